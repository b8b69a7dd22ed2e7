// Many sentences for a model: encoded on all threads, cut to what the model can read, and batched with others of their length.
#pragma once

#include "heed/text/tokenizer.h"

namespace heed {

struct Sentence {
  std::string text;
  std::optional<std::string> pair = {};  // a second one, to be judged together with the first
};

struct EncodedSentences {
  std::vector<Encoding> encodings = {};  // in the order of the sentences
  int64_t cut = 0;                       // how many had more than options.max_length tokens
};
EncodedSentences encode_sentences(const Tokenizer& tokenizer, std::span<const Sentence> sentences, const EncodeOptions& options = {});

// States of about so many tokens stay in a core's caches: with four times as many a small encoder took 8% longer.
inline constexpr int64_t kTokensAtOnce = 1024;

// Which sentences go together: places in `encodings`, the longest first, so that little is padding and no batch has more than
// `most_tokens` with it, unless a single sentence has.
std::vector<std::vector<size_t>> batches_by_length(std::span<const Encoding> encodings, int64_t most_tokens = kTokensAtOnce);

}  // namespace heed
