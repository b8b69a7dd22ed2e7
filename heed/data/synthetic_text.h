// Shared by the synthetic texts: random choices, words, and the split into parts.
#pragma once

#include <functional>
#include <span>

#include "heed/core/random.h"
#include "heed/data/text_data.h"

namespace heed {

using WordList = std::span<const char* const>;

// Use one draw per statement: the evaluation order within an expression differs between compilers.
class Draw {
 public:
  explicit Draw(Rng& rng) : rng_(rng) {}
  uint64_t below(uint64_t bound) { return rng_.below(bound); }
  bool one_in(uint64_t bound) { return below(bound) == 0; }
  bool coin() { return one_in(2); }
  std::string of(WordList words) { return words[below(words.size())]; }
  std::string other(WordList words, const std::string& than) {  // a word other than `than`
    for (;;)
      if (std::string word = of(words); word != than) return word;
  }

 private:
  Rng& rng_;
};

// Calls `make` for each item until the result belongs to the part. yes: the label, true for exactly one of the items 2k and 2k + 1
std::vector<LabelledText> synthetic_texts(int64_t count, uint64_t seed, DataPart part,
                                          const std::function<LabelledText(Draw draw, bool yes)>& make);

std::string capital(std::string text);              // first letter uppercased
std::string with_article(const std::string& noun);  // "a sparrow", "an owl"

}  // namespace heed
