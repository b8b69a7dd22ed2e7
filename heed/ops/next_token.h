// The first and the last kernel of a decoding step on a GPU: from the last tokens to their states, and from logits to the next tokens.
#pragma once

#include "heed/core/api.h"
#include "heed/core/kernel.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// The sequences that are being written.
struct WrittenTokens {
  Tensor last;     // (B) i64: tokens that are not in the KV cache yet; -1: a score was not finite
  Tensor lengths;  // (B) i64: tokens in the KV cache, so the positions of `last`
  Tensor all;      // (B, capacity) i64: tokens by their position, from the first chosen one on
};

// The device of all, after a check of their shapes. op: for errors; logits: (B, V)
Device device_of_written(const char* op, const Tensor& logits, const WrittenTokens& written);

// table: (V, D), positions: (P, D) or undefined -> out: (B, D). A token of -1 gives NaN.
void embed_last_tokens(const Tensor& table, const Tensor& positions, const WrittenTokens& written, const Tensor& out);

// Appends the token with the largest logit, the first of equal ones. logits: (B, V)
void append_best_tokens(const Tensor& logits, const WrittenTokens& written);

struct EmbedLastTokens {
  const float *table, *positions;
  const int64_t *last, *lengths;
  float* out;
  int64_t B, D;
};
HEED_KERNEL(embed_last, EmbedLastTokens);

struct AppendBestTokens {
  const float* logits;
  int64_t *last, *lengths, *all;
  int64_t B, V, capacity;
};
HEED_KERNEL(append_best, AppendBestTokens);

}  // namespace heed
