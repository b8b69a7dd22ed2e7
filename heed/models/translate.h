// Many sentences through an encoder-decoder: batched with others of their length, translated, and told as text.
#pragma once

#include <optional>

#include "heed/models/generate.h"
#include "heed/text/tokenizer.h"

namespace heed {

// Row `row` of texts (rows, L) behind the first `began` tokens: up to the token that ends it, without padding.
std::vector<int32_t> tokens_written(const Tensor& texts, int64_t row, int64_t began, const GenerationOptions& options);

// Special tokens are left out, and ids beyond the tokenizer's: some vocabularies are filled up to a round number.
std::string text_of(const Tokenizer& tokenizer, std::span<const int32_t> ids);

// What is read and what is written.
struct Languages {
  const Tokenizer &source, &target;
  int64_t pad;  // fills up what is read
};

struct Translated {
  std::vector<int32_t> tokens = {};
  std::string text = {};
  std::optional<float> score = {};  // of beams
};

// In the order of the sentences; one without tokens stays empty. done: told how many more are ready
std::vector<Translated> translate(const Model& model, const Languages& languages, std::span<const Encoding> sentences,
                                  const GenerationOptions& options, const std::function<void(int64_t count)>& done = {});

}  // namespace heed
