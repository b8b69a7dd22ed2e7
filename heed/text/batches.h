// Many sentences for a model: encoded on all threads, truncated to max_length, batched by length.
#pragma once

#include "heed/core/api.h"
#include "heed/text/tokenizer.h"

namespace HEED_API heed {

// A sentence, or a pair of them.
struct Sentence {
  std::string text;
  std::optional<std::string> pair = {};  // second sentence of a pair
};

// Sentences as tokens.
struct EncodedSentences {
  std::vector<Encoding> encodings = {};  // in input order
  int64_t cut = 0;                       // number of truncated sentences
};
// On all threads.
EncodedSentences encode_sentences(const Tokenizer& tokenizer, std::span<const Sentence> sentences, const EncodeOptions& options = {});

// Activations of about this many tokens stay in a core's caches: with four times as many a small encoder took 8% longer.
inline constexpr int64_t kDefaultBatchTokens = 1024;

// Batches as indices into `encodings`, longest first to limit padding. A batch has at most `max_tokens` tokens including padding,
// unless a single sentence is longer.
std::vector<std::vector<size_t>> batches_by_length(std::span<const Encoding> encodings, int64_t max_tokens = kDefaultBatchTokens);

}  // namespace heed
