// What commands that write text share: how long texts may get, and tokens as text for people, also while they are being written.
#pragma once

#include "heed/models/translate.h"

namespace heed::cli {

// A model that writes text; others are refused. nonfinite: weights that are NaN or infinite are let through
Model load_writer(const Path& folder, bool int8, bool nonfinite);
GenerationOptions generation_options_in(const Path& folder, const Model& model);  // of its files, which messages name
// How many tokens the model has positions for, by its config; a huge number where that says nothing.
int64_t position_limit(const Model& model);

// Text that grows token by token. A token may end inside a character: such bytes wait for the rest.
class TextStream {
 public:
  // prompt: what the tokens go on from. It decides about spaces, and is not told again.
  TextStream(const Tokenizer& tokenizer, std::vector<int32_t> prompt);

  std::string add(std::span<const int32_t> ids);  // the text that is now certain
  std::string finish();                           // the rest, mistakes and all

 private:
  std::string told_until(size_t end);

  const Tokenizer& tokenizer_;
  std::vector<int32_t> ids_;
  std::string text_;  // of all ids
  size_t told_;       // bytes of it
};

}  // namespace heed::cli
