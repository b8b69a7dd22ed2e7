// What kernel attention asks of its kernels: sums over keys, in chunks, forward and backward.
#pragma once

#include "heed/attention/linear_attention.h"

namespace heed {

inline constexpr float kReluFloor = 1e-3f;  // what the relu map adds

struct LinearAttentionSizes {
  int64_t B, H, G, N, M, D, E, R;  // items, query heads, key heads, queries, keys, widths of q and k, of v, of features
  FeatureMap map;
  bool causal;
  float scale;  // of q and k
};

struct LinearAttentionSums {
  Tensor out;                     // (B, H, N, E)
  Tensor total;                   // (B, H, N): phi(q).z
  Tensor gains, tops;             // (B, G, M), (B, G, M + 1) for random features: log of every key's scale, and the largest so far
  Tensor states;                  // (B G, segments + 1, padded S and z): sums before every stretch of keys, and over all
  LinearAttentionState finished;  // S, z and top over all keys
};

// q undefined: only the sums. All dense; start: sums of keys that came before, or undefined ones.
LinearAttentionSums linear_attention_forward(const LinearAttentionSizes& sizes, const Tensor& projection, const Tensor& lengths,
                                             const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttentionState& start);

// g: (B, H, N, E) -> the gradients of q, k and v.
Grads linear_attention_backward(const LinearAttentionSizes& sizes, const Tensor& projection, const Tensor& lengths, const Tensor& q,
                                const Tensor& k, const Tensor& v, const LinearAttentionSums& forward, const Tensor& g);

}  // namespace heed
