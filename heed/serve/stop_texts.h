// The text of generated tokens. Characters are released when they are complete and cannot be part of a stop text.
#pragma once

#include <string>
#include <vector>

#include "heed/text/tokenizer.h"

namespace heed::serve {

class TextSoFar {
 public:
  TextSoFar(const Tokenizer& tokenizer, std::vector<std::string> stop) : tokenizer_(&tokenizer), stop_(std::move(stop)) {}

  std::string add(int32_t token);            // -> text that can be shown now
  std::string rest();                        // what was held back, at the end
  bool stopped() const { return stopped_; }  // a stop text was found; it and the rest are left out

 private:
  std::string released(bool at_end);

  const Tokenizer* tokenizer_;
  std::vector<std::string> stop_;
  std::vector<int32_t> tokens_;
  size_t context_ = 0, decoded_ = 0;  // tokens before `decoded_` are in the text; those from `context_` on decide about spaces after them
  std::string held_;                  // text that is not shown yet
  bool stopped_ = false;
};

}  // namespace heed::serve
