// Causal attention of one new token of each sequence to a KV cache of fixed capacity whose length is in device memory, so that a captured
// graph can be run for token after token. Adds the new token's key and value to the cache.
#pragma once

#include <utility>

#include "heed/core/api.h"
#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// What does not change from call to call. Rotary positions: the tables of Rotary.
struct CachedHeads {
  Tensor keys, values;              // (B, G, capacity, D) f32 or bf16
  Tensor lengths = {};              // (B) i64: tokens in the cache, without the new one
  Tensor tickets = {}, parts = {};  // cached_attention_scratch
  Tensor cosine = {}, sine = {};    // (positions, D) or undefined: no rotary positions
  int64_t rotated = 0;              // features that they rotate
  bool halves = false;              // pairs are (i, i + rotated / 2), not (2i, 2i + 1)
  int64_t before = -1;              // only so many tokens before the new one are visible; -1: all
  float beta = 1;                   // factor of the scores
};

bool cached_attention_supports(int64_t D, DType dtype);  // of the cache

// Memory for all calls, one after the other: kernels of a captured graph may not take their own. keys: (B, G, capacity, D) -> (B G) i32,
// zeros, and f32
std::pair<Tensor, Tensor> cached_attention_scratch(const Tensor& keys, int64_t H);

// qkv: (B, (H + 2 G) D) f32, of the new tokens -> out: (B, H D) f32
void cached_attention(const CachedHeads& heads, const Tensor& qkv, const Tensor& out);

struct CachedAttention {
  const float* qkv;
  void *keys, *values;
  const int64_t* lengths;
  int32_t* tickets;  // (B, G), zeros before and after: counts blocks that are done
  float* parts;      // (B, H, chunks, D + 2): the largest score, the sum of weights and the sums of values of each chunk
  const float *cosine, *sine;
  float* out;
  int64_t B, H, G, D, capacity, rotated, before;
  bool halves;
  float beta;
  DType dtype;  // of keys and values

  static constexpr int64_t kChunk = 256;  // keys of a block
  HEED_HOST_DEVICE static int64_t chunks_of(int64_t capacity) { return (capacity + kChunk - 1) / kChunk; }
  int64_t multiply_adds() const { return 2 * B * H * D * capacity; }

  // Feature d of a query or key at a position. x: (D)
  HEED_HOST_DEVICE float rotated_feature(const float* x, int64_t d, int64_t position) const {
    if (!cosine || d >= rotated) return x[d];
    const int64_t partner = !halves ? d ^ 1 : d < rotated / 2 ? d + rotated / 2 : d - rotated / 2;
    return x[d] * cosine[position * D + d] + x[partner] * sine[position * D + d];
  }
};
HEED_KERNEL(cached_attention_forward, CachedAttention);

}  // namespace heed
