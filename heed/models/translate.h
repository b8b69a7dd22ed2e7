// Translation of many sentences with an encoder-decoder, in batches of similar length.
#pragma once

#include <optional>

#include "heed/core/api.h"
#include "heed/models/generate.h"
#include "heed/text/tokenizer.h"

namespace HEED_API heed {

// Row `row` of texts (rows, L) after the first `prompt_length` tokens, up to and including the end token, without padding.
std::vector<int32_t> generated_tokens(const Tensor& texts, int64_t row, int64_t prompt_length, const GenerationOptions& options);

// Skips special tokens, and ids beyond the tokenizer's: some vocabularies are padded to a round number.
std::string text_of(const Tokenizer& tokenizer, std::span<const int32_t> ids);

// The tokenizers of both languages.
struct TranslationTokenizers {
  const Tokenizer &source, &target;
  int64_t pad;  // padding token of the source
};

// One translation.
struct Translated {
  std::vector<int32_t> tokens = {};
  std::string text = {};
  std::optional<float> score = {};  // with beam search
};

// In the order of the sentences; empty for sentences without tokens. done: called after every batch with its number of sentences
std::vector<Translated> translate(const Model& model, const TranslationTokenizers& tokenizers, std::span<const Encoding> sentences,
                                  const GenerationOptions& options, const std::function<void(int64_t count)>& done = {});

}  // namespace heed
