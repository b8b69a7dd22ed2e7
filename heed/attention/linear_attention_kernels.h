// Arguments of the linear attention kernels: sums over keys, in chunks, forward and backward. Read by g++ and nvcc.
#pragma once

#include <algorithm>

#include "heed/core/api.h"
#include "heed/core/dtype.h"
#include "heed/core/kernel.h"

namespace HEED_API heed {

enum class FeatureMap {
  elu,    // elu(x) + 1: x + 1 above zero, e^x below
  relu,   // max(x, 0) + 0.001, so that a query always sees something
  random  // e^(w_r.x - |x|^2 / 2) for every row w_r of the projection: phi(q).phi(k) is e^(q.k) on average
};

inline constexpr float kReluFloor = 1e-3f;  // what the relu map adds

struct LinearAttentionSizes {
  int64_t B, H, G, N, M, D, E, R;  // items, query heads, key heads, queries, keys, widths of q and k, of v, of features
  FeatureMap map;
  bool causal;
  float scale;  // of q and k
};

inline constexpr int64_t kChunkTokens = 32;       // tokens: 14% faster than 64 in the causal form, whose masked products shrink with it
inline constexpr int64_t kShortestSegment = 256;  // tokens
inline constexpr float kNoGain = -1e30f;          // the largest gain before the first key

// How the tokens of a head are split into segments, which run in parallel. Depends on the shape alone.
struct TokenSplit {
  int64_t segments = 0, segment_tokens = 1;
};
inline TokenSplit split_tokens(int64_t heads, int64_t tokens) {
  const int64_t most = (tokens + kShortestSegment - 1) / kShortestSegment;
  const int64_t parts = std::clamp<int64_t>(16 / std::max<int64_t>(heads, 1), 1, std::max<int64_t>(most, 1));
  const int64_t segment_tokens = std::max<int64_t>(1, ((tokens + parts - 1) / parts + kChunkTokens - 1) / kChunkTokens) * kChunkTokens;
  return {(tokens + segment_tokens - 1) / segment_tokens, segment_tokens};
}

// On GPUs chunks are longer, and all of them run in parallel: in causal attention every chunk is a segment.
inline constexpr int64_t kCudaChunkTokens = 64;
inline TokenSplit cuda_split_tokens(int64_t tokens, bool causal) {
  const int64_t segment_tokens = causal ? kCudaChunkTokens : 4 * kCudaChunkTokens;
  return {(tokens + segment_tokens - 1) / segment_tokens, segment_tokens};
}

// Widths are padded to whole registers on the CPU. States are S (R, E) and z (R), padded: (width_r, width_e), (width_r).
struct LinearAttentionLayout {
  int64_t width_d, width_e, width_r;
  TokenSplit queries, keys;

  int64_t state() const { return width_r * (width_e + 1); }
};

struct LinearAttentionArgs {
  LinearAttentionSizes sizes;
  LinearAttentionLayout layout;
  const int64_t* lengths;              // (B), or null: all keys
  const float* projection;             // (R, width_d), times scale
  const float* projection_transposed;  // (D, width_r), times scale
  const float *q, *k, *v;              // q is null where only the sums are computed
  float *gains, *largest_gain;         // (B G, M), (B G, M + 1) for random features, else null
  float* states;                       // (B G, key segments + 1, state): of the keys before each segment; the first is an input
  Device device;

  int64_t multiply_adds() const;                                                                              // of a forward pass
  int64_t features() const { return (sizes.B * sizes.G * sizes.M + sizes.B * sizes.H * sizes.N) * sizes.R; }  // of all tokens
};

struct LinearAttentionForward {
  LinearAttentionArgs in;
  float *out, *total;         // (B H, N, E), (B H, N)
  void* workspace = nullptr;  // on GPUs: features of keys and of queries

  int64_t multiply_adds() const { return in.multiply_adds(); }
  int64_t workspace_bytes(Device device) const {
    return device.kind == Device::Kind::cpu ? 0 : in.features() * static_cast<int64_t>(sizeof(float));
  }
};
HEED_KERNEL(linear_attention_forward, LinearAttentionForward);

struct LinearAttentionBackward {
  LinearAttentionArgs in;
  const float *g, *out, *total;
  float *dq, *dk, *dv;
  void* workspace = nullptr;  // (B G, query segments + 1, state): sums over the queries from each segment on; on GPUs also features and
                              // their gradients, (B H, N, E + 1) gradients of numerators and denominators, and (B G, M) sums

  int64_t multiply_adds() const { return 2 * in.multiply_adds(); }  // the same products twice
  int64_t workspace_bytes(Device device) const {
    const LinearAttentionSizes& z = in.sizes;
    const int64_t sums = z.B * z.G * (in.layout.queries.segments + 1) * in.layout.state();
    const int64_t more = device.kind == Device::Kind::cpu ? 0 : 2 * in.features() + z.B * z.H * z.N * (z.E + 1) + z.B * z.G * z.M;
    return (sums + more) * static_cast<int64_t>(sizeof(float));
  }
};
HEED_KERNEL(linear_attention_backward, LinearAttentionBackward);

}  // namespace heed
