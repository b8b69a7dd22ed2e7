// An invented language for experiments with pre-training: its documents have topics, and its words have classes.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "heed/core/random.h"

namespace heed::lab {

inline constexpr std::array kWordClasses{"noun", "verb", "adjective", "adverb"};

// A document has one topic and uses its nouns only; all other words occur in all documents.
struct InventedLanguage {
  std::vector<std::vector<std::string>> nouns;                       // by topic
  std::array<std::vector<std::string>, kWordClasses.size()> others;  // by class, without nouns

  // words: nouns of a topic, and half of the verbs, of the adjectives and of the adverbs
  InventedLanguage(int64_t topics, int64_t words);
};

// Which words of every list a text uses: all, or those with even or odd numbers.
enum class WordSet { all, even, odd };

struct ClassedText {
  std::string text = {};
  int64_t topic = 0;
  std::vector<int64_t> classes = {};  // of every word; -1: "the" or a full stop
};

ClassedText drawn_text(const InventedLanguage& language, int64_t topic, int64_t sentences, WordSet which, Rng& rng);

}  // namespace heed::lab
