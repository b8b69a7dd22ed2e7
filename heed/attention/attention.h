// Attention: one operation for every kind. It never holds the N x M map, forward or backward.
#pragma once

#include <optional>
#include <vector>

#include "heed/attention/terms.h"
#include "heed/core/autograd.h"

namespace heed {

namespace op {
inline constexpr OpName attention{"attention"};
}

struct AttentionOptions {
  std::optional<float> beta = {};  // inverse temperature; 1 / sqrt(D) unless given. 0: no content, only the terms speak
  std::vector<Term> terms = {};    // applied in turn to beta q.k
};

// softmax(beta q k^T + terms) v. q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E), H a multiple of G -> (B, H, N, E)
// A query whose every key is masked gives zeros and takes no gradient.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

}  // namespace heed
