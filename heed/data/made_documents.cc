#include "heed/data/made_documents.h"

#include <array>

namespace heed {
namespace {

// What speaks of one thing alone: an ending may be that of a film or of a book.
using Words = std::vector<const char*>;
const std::array<Words, 6> kTold = {{
    {"film", "plot", "acting", "camera work", "dialogue", "opening scene", "leading actor", "director's", "harbour town"},
    {"restaurant", "soup", "service", "wine list", "dessert", "bread", "dining room", "fish", "menu", "six of us"},
    {"hotel", "bed", "breakfast", "reception", "view", "pool", "lift", "bathroom", "three nights", "fourth floor"},
    {"phone", "screen", "battery", "speaker", "keyboard", "case", "software", "charger", "the blue one"},
    {"book", "story", "first chapter", "style", "translation", "hero", "cover", "humour", "four hundred pages"},
    {"concert", "singer", "band", "light show", "encore", "hall", "drummer", "choice of songs", "tickets"},
}};

// The place in kTold of what an opinion is about; as many as there are: it does not tell.
size_t thing_of(const std::string& opinion) {
  for (size_t thing = 0; thing < kTold.size(); ++thing)
    for (const char* word : kTold[thing])
      if (opinion.find(std::string(" ") + word) != std::string::npos) return thing;
  return kTold.size();
}

}  // namespace

std::vector<std::vector<std::string>> made_documents(int64_t opinions, uint64_t seed, DataPart part) {
  constexpr size_t least = 6, lengths = 8;  // sentences of a document: 6 to 13, in turn
  std::vector<std::vector<std::string>> documents;
  std::array<std::vector<std::string>, kTold.size()> open;
  for (const LabelledText& opinion : made_opinions(opinions, seed, part)) {
    const size_t thing = thing_of(opinion.text);
    if (thing == kTold.size()) continue;
    for (std::string& sentence : sentences_of(opinion.text)) open[thing].push_back(std::move(sentence));
    if (open[thing].size() < least + documents.size() % lengths) continue;
    documents.push_back(std::move(open[thing]));
    open[thing].clear();
  }
  for (std::vector<std::string>& rest : open)
    if (rest.size() > 1) documents.push_back(std::move(rest));
  return documents;
}

}  // namespace heed
