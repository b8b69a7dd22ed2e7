// What the op asks of the kernels: forward, and backward with the gradients of every learned term.
#pragma once

#include <vector>

#include "heed/attention/terms.h"

namespace heed {

struct AttentionSizes {
  int64_t B, H, G, N, M, D, E;  // items, query heads, key heads, queries, keys, width of q and k, width of v
  float beta;
};

// q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E) -> out: (B, H, N, E), log_total: (B, H, N). All dense.
void attention_forward(const AttentionSizes& sizes, const std::vector<Term>& terms, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& out, const Tensor& log_total);

struct AttentionGradients {
  Tensor q, k, v;
  Tensors parameters;  // of the terms, in order; a Bias' is (B, H, N, M)
};
AttentionGradients attention_backward(const AttentionSizes& sizes, const std::vector<Term>& terms, const Tensor& q, const Tensor& k,
                                      const Tensor& v, const Tensor& out, const Tensor& log_total, const Tensor& g);

}  // namespace heed
