// What kernel attention asks of its kernels: sums over keys, in chunks, forward and backward.
#pragma once

#include "heed/attention/kernel_attention.h"

namespace heed {

inline constexpr float kReluFloor = 1e-3f;  // what the relu map adds

struct KernelSizes {
  int64_t B, H, G, N, M, D, E, R;  // items, query heads, key heads, queries, keys, widths of q and k, of v, of features
  FeatureMap map;
  bool causal;
  float scale;  // of q and k
};

struct KernelSums {
  Tensor out;            // (B, H, N, E)
  Tensor total;          // (B, H, N): phi(q).z
  Tensor gains, tops;    // (B, G, M), (B, G, M + 1) for random features: log of every key's scale, and the largest so far
  Tensor states;         // (B G, segments + 1, padded S and z): sums before every stretch of keys, and over all
  KernelState finished;  // S, z and top over all keys
};

// q undefined: only the sums. All dense; start: sums of keys that came before, or undefined ones.
KernelSums kernel_forward(const KernelSizes& sizes, const Tensor& projection, const Tensor& lengths, const Tensor& q, const Tensor& k,
                          const Tensor& v, const KernelState& start);

// g: (B, H, N, E) -> the gradients of q, k and v.
Grads kernel_backward(const KernelSizes& sizes, const Tensor& projection, const Tensor& lengths, const Tensor& q, const Tensor& k,
                      const Tensor& v, const KernelSums& forward, const Tensor& g);

}  // namespace heed
