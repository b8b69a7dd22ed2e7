#include "heed/data/synthetic_documents.h"

#include <array>

namespace heed {
namespace {

// Words that identify one topic; ambiguous ones such as "ending" (film or book) are left out.
using Words = std::vector<const char*>;
const std::array<Words, 6> kTopicWords = {{
    {"film", "plot", "acting", "camera work", "dialogue", "opening scene", "leading actor", "director's", "harbour town"},
    {"restaurant", "soup", "service", "wine list", "dessert", "bread", "dining room", "fish", "menu", "six of us"},
    {"hotel", "bed", "breakfast", "reception", "view", "pool", "lift", "bathroom", "three nights", "fourth floor"},
    {"phone", "screen", "battery", "speaker", "keyboard", "case", "software", "charger", "the blue one"},
    {"book", "story", "first chapter", "style", "translation", "hero", "cover", "humour", "four hundred pages"},
    {"concert", "singer", "band", "light show", "encore", "hall", "drummer", "choice of songs", "tickets"},
}};

// Index into kTopicWords; kTopicWords.size() if there is no topic word.
size_t topic_of(const std::string& opinion) {
  for (size_t topic = 0; topic < kTopicWords.size(); ++topic)
    for (const char* word : kTopicWords[topic])
      if (opinion.find(std::string(" ") + word) != std::string::npos) return topic;
  return kTopicWords.size();
}

}  // namespace

std::vector<std::vector<std::string>> synthetic_documents(int64_t opinions, uint64_t seed, DataPart part) {
  constexpr size_t min_sentences = 6, lengths = 8;  // documents have 6 to 13 sentences
  std::vector<std::vector<std::string>> documents;
  std::array<std::vector<std::string>, kTopicWords.size()> open;
  for (const LabelledText& opinion : synthetic_opinions(opinions, seed, part)) {
    const size_t topic = topic_of(opinion.text);
    if (topic == kTopicWords.size()) continue;
    for (std::string& sentence : sentences_of(opinion.text)) open[topic].push_back(std::move(sentence));
    if (open[topic].size() < min_sentences + documents.size() % lengths) continue;
    documents.push_back(std::move(open[topic]));
    open[topic].clear();
  }
  for (std::vector<std::string>& rest : open)
    if (rest.size() > 1) documents.push_back(std::move(rest));
  return documents;
}

}  // namespace heed
