// What texts made by rule share: draws by chance, words, and which part a text belongs to.
#pragma once

#include <functional>
#include <span>

#include "heed/core/random.h"
#include "heed/data/text_data.h"

namespace heed {

using WordList = std::span<const char* const>;

// Two draws in one expression come in no certain order: compilers differ. One draw a statement.
class Draw {
 public:
  explicit Draw(Rng& chance) : chance_(chance) {}
  uint64_t below(uint64_t bound) { return chance_.below(bound); }
  bool one_in(uint64_t bound) { return below(bound) == 0; }
  bool coin() { return one_in(2); }
  std::string of(WordList words) { return words[below(words.size())]; }
  std::string other(WordList words, const std::string& than) {  // one that is not `than`
    for (;;)
      if (std::string word = of(words); word != than) return word;
  }

 private:
  Rng& chance_;
};

// `make` is asked again until it gives an item of the part. yes: which label; of items 2k and 2k + 1 one has each.
std::vector<LabelledText> made_texts(int64_t count, uint64_t seed, DataPart part,
                                     const std::function<LabelledText(Draw draw, bool yes)>& make);

std::string capital(std::string text);              // with its first letter in upper case
std::string with_article(const std::string& noun);  // "a sparrow", "an owl"

}  // namespace heed
