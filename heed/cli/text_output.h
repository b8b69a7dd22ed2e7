// Shared by commands that generate text: loading, length limits, and streaming detokenization.
#pragma once

#include "heed/models/architecture.h"
#include "heed/models/translate.h"

namespace heed::cli {

// Loads a model that generates text; others are refused with the text `otherwise`. nonfinite: accept NaN and infinite weights
Model load_text_generator(const Path& folder, bool int8, bool nonfinite,
                          const char* otherwise = "does not generate text, expected a language model");
GenerationOptions generation_options_in(const Path& folder, const Model& model);  // from its files, which errors name

// Detokenizes incrementally. A token may end inside a UTF-8 character; its bytes are held back until the rest arrives.
class TextStream {
 public:
  // prompt: the tokens before, which determine spacing; their text is not returned
  TextStream(const Tokenizer& tokenizer, std::vector<int32_t> prompt);

  std::string add(std::span<const int32_t> ids);  // -> the new complete characters
  std::string finish();                           // -> the rest, including an incomplete character

 private:
  std::string take_until(size_t end);

  const Tokenizer& tokenizer_;
  std::vector<int32_t> ids_;
  std::string text_;  // of all ids
  size_t returned_;   // bytes of text_
};

}  // namespace heed::cli
