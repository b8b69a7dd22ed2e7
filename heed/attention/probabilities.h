// The attention probabilities of selected heads and queries, for inspection; attention() does not store them.
#pragma once

#include <vector>

#include "heed/attention/attention.h"
#include "heed/core/api.h"

namespace HEED_API heed {

// softmax(beta q k^T + terms), or the one-hot rows of hard attention; without dropout and without gradients.
// q: (B, H, N, D), k: (B, G, M, D); heads, rows: which of the H and N, in that order, empty: all -> (B, heads, rows, M)
// Zeros for a query with all keys masked.
Tensor attention_probabilities(const Tensor& q, const Tensor& k, const AttentionOptions& options = {}, std::vector<int64_t> heads = {},
                               std::vector<int64_t> rows = {});

}  // namespace heed
