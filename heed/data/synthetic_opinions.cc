// Synthetic opinions. Negations invert an adjective, the clause after "but" outweighs the one before it, "although" concedes. Both classes
// use the same words, so a bag-of-words model is not enough.
#include <array>

#include "heed/data/synthetic_text.h"

namespace heed {
namespace {

struct Domain {
  const char* thing;  // "the film"
  std::array<const char*, 8> aspects;
  std::array<const char*, 4> settings;  // neutral
};

constexpr std::array<Domain, 6> kDomains = {{
    {"film",
     {"plot", "acting", "camera work", "ending", "dialogue", "music", "opening scene", "leading actor"},
     {"we saw it on a rainy Sunday", "it runs for two hours", "it is set in a small harbour town", "it is the director's third"}},
    {"restaurant",
     {"soup", "service", "wine list", "dessert", "bread", "dining room", "fish", "menu"},
     {"we came here on a Tuesday", "it is near the station", "there were six of us", "it opened last spring"}},
    {"hotel",
     {"room", "bed", "breakfast", "reception", "view", "pool", "lift", "bathroom"},
     {"we stayed for three nights", "it lies behind the old market", "our room was on the fourth floor", "we travelled with children"}},
    {"phone",
     {"screen", "battery", "camera", "speaker", "keyboard", "case", "software", "sound"},
     {"I have had it for a month", "it came with a charger", "I bought the blue one", "it replaces my old one"}},
    {"book",
     {"story", "first chapter", "style", "translation", "hero", "ending", "cover", "humour"},
     {"my sister lent it to me", "it has four hundred pages", "I read it on the train", "it is the second of a series"}},
    {"concert",
     {"singer", "sound", "band", "light show", "encore", "hall", "drummer", "choice of songs"},
     {"we stood near the stage", "it began at eight", "it took place outdoors", "tickets were sold at the door"}},
}};

constexpr std::array<const char*, 16> kGood = {"good",       "great",      "wonderful", "excellent", "superb",   "charming",
                                               "delightful", "impressive", "brilliant", "lovely",    "splendid", "pleasant",
                                               "remarkable", "clever",     "fine",      "satisfying"};
constexpr std::array<const char*, 16> kBad = {"bad",      "terrible",      "awful",  "poor",     "dreadful", "boring",
                                              "dull",     "disappointing", "weak",   "horrible", "tedious",  "mediocre",
                                              "annoying", "uninspired",    "clumsy", "lousy"};
constexpr std::array<const char*, 8> kStronger = {"very", "really", "truly", "quite", "rather", "extremely", "absolutely", "surprisingly"};
// Each inverts the adjective after it.
constexpr std::array<const char*, 7> kNegations = {"not", "never", "far from", "anything but", "hardly", "by no means", "not at all"};
constexpr std::array<const char*, 6> kButs = {", but ", ", yet ", "; however, ", ", and still ", ". But ", "; all the same, "};
constexpr std::array<const char*, 3> kAlthoughs = {"although", "even though", "though"};

std::string clause(Draw& draw, const Domain& domain, const std::string& aspect, bool good) {
  const bool negated = draw.below(5) < 2;
  const std::string adjective = draw.of(good != negated ? WordList(kGood) : WordList(kBad));
  const std::string stronger = draw.coin() ? draw.of(kStronger) + " " : "";
  const std::string subject = "the " + aspect, plain = negated ? draw.of(kNegations) + " " + adjective : stronger + adjective;
  switch (draw.below(5)) {
    case 0: return "I found " + subject + " " + plain;
    case 1:
      return negated ? "nobody could call " + subject + " " + adjective : "everybody would call " + subject + " " + stronger + adjective;
    case 2:
      return negated ? "it is not true that " + subject + " was " + stronger + adjective
                     : subject + " of this " + domain.thing + " was " + plain;
    default: return subject + " " + (draw.coin() ? "is " : "was ") + plain;
  }
}

// Two clauses of opposite meaning; `good` is the dominant one.
std::string contrast(Draw& draw, const Domain& domain, bool good) {
  const std::string aspect = draw.of(domain.aspects), second = draw.other(domain.aspects, aspect);
  const std::string conceded = clause(draw, domain, aspect, !good), dominant = clause(draw, domain, second, good);
  switch (draw.below(3)) {
    case 0: return draw.of(kAlthoughs) + " " + conceded + ", " + dominant;
    case 1: return dominant + ", " + draw.of(kAlthoughs) + " " + conceded;
    default: {
      const std::string but = draw.of(kButs);
      return conceded + but + dominant;
    }
  }
}

std::string verdict(Draw& draw, const Domain& domain, bool good) {
  const std::string thing = domain.thing, fits = with_article(draw.of(good ? WordList(kGood) : WordList(kBad)));
  switch (draw.below(4)) {
    case 0: return std::string("I would ") + (good ? "" : "not ") + "recommend this " + thing;
    case 1:
      return "I expected " + with_article(draw.of(good ? WordList(kBad) : WordList(kGood))) + " " + thing + " and got " + fits + " one";
    case 2: return "what " + fits + " " + thing;
    default: return std::string("do ") + (good ? "not miss" : "not waste your time on") + " this " + thing;
  }
}

LabelledText opinion(Draw draw, bool good) {
  const Domain& domain = kDomains[draw.below(kDomains.size())];
  std::string text;
  if (draw.one_in(3)) text = capital(draw.of(domain.settings)) + ". ";
  const uint64_t form = draw.below(8);
  text += capital(form < 4   ? contrast(draw, domain, good)
                  : form < 7 ? clause(draw, domain, draw.of(domain.aspects), good)
                             : verdict(draw, domain, good));
  text += draw.one_in(6) ? "!" : ".";
  // Capitalize after inner full stops.
  for (size_t at = text.find(". "); at != std::string::npos; at = text.find(". ", at + 1))
    text = text.substr(0, at + 2) + capital(text.substr(at + 2));
  return {.text = text, .label = good ? "positive" : "negative"};
}

}  // namespace

std::vector<LabelledText> synthetic_opinions(int64_t count, uint64_t seed, DataPart part) {
  return synthetic_texts(count, seed, part, opinion);
}

}  // namespace heed
