// The tokens with labels that a head for masked tokens reads, found on the host before a step, so that the step may run as a CUDA graph.
#pragma once

#include "heed/core/api.h"
#include "heed/models/model.h"

namespace HEED_API heed {

// Inputs of encoders with such a head; both must be given, or neither. labelled_rows (B, n) i64: the tokens that the last layer computes,
// as rows of (B N). label_places (K) i64: for "labels" (K), the rows of their tokens in the result (B n).
inline constexpr const char* kLabelledRows = "labelled_rows";
inline constexpr const char* kLabelPlaces = "label_places";

// Replaces "attention_mask" where every text is padded at its end: tokens of every text, (B) i64.
inline constexpr const char* kTokenCounts = "token_counts";

// Replaces "labels" (B, N) by these inputs. They are padded, with tokens without a label and labels of -100, for at least `capacity`
// labelled tokens per text, so that all batches have the same shapes. capacity: the maximum of any text; 0: that of this batch
TensorMap with_labelled_tokens(TensorMap inputs, int64_t capacity = 0);

// The first token of every text and the tokens with labels, padded with the first token. labels: (B, N) or undefined; they become (B, n),
// with -100 for tokens without a label. -> (B, n), rows of (B N)
Tensor read_rows(Tensor& labels, int64_t B, int64_t N, int64_t least = 1);

}  // namespace heed
