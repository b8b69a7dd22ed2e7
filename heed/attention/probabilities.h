// The attention probabilities of chosen heads and queries, for inspection. attention() itself never stores them.
#pragma once

#include <vector>

#include "heed/attention/attention.h"
#include "heed/core/api.h"

namespace HEED_API heed {

// softmax(beta q k^T + terms), or the one-hot rows of hard attention; without dropout, nothing is recorded.
// q: (B, H, N, D), k: (B, G, M, D); heads, rows: which of the H and N, in that order, empty: all -> (B, heads, rows, M)
// A query whose every key is masked has zeros.
Tensor attention_probabilities(const Tensor& q, const Tensor& k, const AttentionOptions& options = {}, std::vector<int64_t> heads = {},
                               std::vector<int64_t> rows = {});

}  // namespace heed
