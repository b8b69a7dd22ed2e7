// Blocks take the queries of a key head and a chunk of its keys. What the cache holds was written by earlier graphs, so the first keys and
// values are fetched before the kernel waits for the new token's. The last block of a key head joins the chunks in order.
#include "heed/attention/cached_attention.h"

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/early_launch.cuh"
#include "heed/cuda/element.cuh"

namespace heed::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kLoads = 8;  // keys and values of a thread in flight

// 16 bytes of a row in the cache, unpacked where they are used. Past the L1 cache, which may hold lines from before the previous token.
template <class T>
struct CachedPack {
  uint4 bits;

  __device__ void load(const T* from) { bits = __ldcg(reinterpret_cast<const uint4*>(from)); }
  __device__ Pack<T> values() const { return load_pack(reinterpret_cast<const T*>(&bits)); }
};
// The row of the new token, which is in shared memory.
template <class T>
__device__ Pack<T> new_values(const float* from) {
  Pack<T> out;
#pragma unroll
  for (int i = 0; i < Pack<T>::kCount; ++i) out.values[i] = from[i];
  return out;
}

template <class T>
__global__ void __launch_bounds__(kThreads, 2) cached_attention_kernel(const __grid_constant__ CachedAttention p) {
  constexpr int kCount = Pack<T>::kCount;
  extern __shared__ __align__(16) float shared[];
  __shared__ float largest[kWarps], totals[kWarps];
  __shared__ bool is_last;
  allow_next();
  const int D = static_cast<int>(p.D), lanes = D / kCount, lane = threadIdx.x % 32, warp = threadIdx.x / 32, slots = kThreads / lanes,
            slot = static_cast<int>(threadIdx.x) / lanes, column = static_cast<int>(threadIdx.x) % lanes * kCount;
  const int64_t g = blockIdx.y, b = blockIdx.z;
  const int chunk = static_cast<int>(blockIdx.x), group = static_cast<int>(p.H / p.G), length = static_cast<int>(p.lengths[b]);
  const int start = p.before < 0 || length < p.before ? 0 : length - static_cast<int>(p.before);  // the first visible key
  constexpr int kChunk = CachedAttention::kChunk;
  const int first_chunk = start / kChunk, last_chunk = length / kChunk;
  if (chunk < first_chunk || chunk > last_chunk) return wait_for_previous();
  const int begin = max(start, chunk * kChunk), end = min((chunk + 1) * kChunk, length + 1);
  T* const keys = static_cast<T*>(p.keys) + (b * p.G + g) * p.capacity * D;
  T* const values = static_cast<T*>(p.values) + (b * p.G + g) * p.capacity * D;

  CachedPack<T> k[kLoads], v[kLoads];
  const auto fetch = [&](int tile) {
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int j = tile + u * slots + slot;
      k[u].bits = v[u].bits = make_uint4(0, 0, 0, 0);
      if (j < end && j < length) {
        k[u].load(keys + int64_t{j} * D + column);
        v[u].load(values + int64_t{j} * D + column);
      }
    }
  };
  fetch(begin);
  wait_for_previous();

  float *const queries = shared, *const key = queries + group * D, *const value = key + D, *const sums = value + D;  // (kWarps, D)
  const float* const from = p.qkv + b * (p.H + 2 * p.G) * D;
  for (int i = threadIdx.x; i < (group + 2) * D; i += kThreads) {
    const int row = i / D, d = i % D;
    const int64_t head = row < group ? g * group + row : row == group ? p.H + g : p.H + p.G + g;
    const float x = row <= group ? p.rotated_feature(from + head * D, d, length) : from[head * D + d];
    shared[i] = row < group ? x * p.beta : rounded_to(x, T());
    if (row >= group && chunk == last_chunk) store((row == group ? keys : values) + int64_t{length} * D + d, x);
  }
  __syncthreads();

  const int tile = kLoads * slots;
  const auto part_of = [&](int64_t row, int64_t c) { return p.parts + (row * CachedAttention::chunks_of(p.capacity) + c) * (D + 2); };
  for (int r = 0; r < group; ++r) {
    float query[kCount], sum[kCount] = {}, most = -HUGE_VALF, total = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) query[i] = queries[r * D + column + i];
    for (int at = begin; at < end; at += tile) {
      if (at > begin || (r > 0 && begin + tile < end)) fetch(at);
      float scores[kLoads], peak = most;
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        const int j = at + u * slots + slot;
        const Pack<T> row = j == length ? new_values<T>(key + column) : k[u].values();
        scores[u] = 0;
#pragma unroll
        for (int i = 0; i < kCount; ++i) scores[u] = fmaf(query[i], row.values[i], scores[u]);
        for (int step = lanes / 2; step > 0; step /= 2) scores[u] += __shfl_xor_sync(kFullWarp, scores[u], step);
        if (j >= end) scores[u] = -HUGE_VALF;
        peak = fmaxf(peak, scores[u]);
      }
      peak = warp_max(peak);
      if (peak == -HUGE_VALF) continue;  // no key for this warp
      const float rescale = expf(most - peak);
      most = peak;
      total *= rescale;
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] *= rescale;
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        const float weight = expf(scores[u] - peak);
        const Pack<T> row = at + u * slots + slot == length ? new_values<T>(value + column) : v[u].values();
        total += weight;
#pragma unroll
        for (int i = 0; i < kCount; ++i) sum[i] = fmaf(weight, row.values[i], sum[i]);
      }
    }
    for (int step = lanes; step < 32; step *= 2) {  // over the keys of the warp
      total += __shfl_xor_sync(kFullWarp, total, step);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] += __shfl_xor_sync(kFullWarp, sum[i], step);
    }
    if (lane < lanes)
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums[warp * D + column + i] = sum[i];
    if (lane == 0) largest[warp] = most, totals[warp] = total;
    __syncthreads();
    const int64_t row = b * p.H + g * group + r;
    for (int d = threadIdx.x; d < D; d += kThreads) {
      float peak = largest[0], all = 0, joined = 0;
      for (int w = 1; w < kWarps; ++w) peak = fmaxf(peak, largest[w]);
      for (int w = 0; w < kWarps; ++w) {
        const float rescale = expf(largest[w] - peak);
        all = fmaf(totals[w], rescale, all);
        joined = fmaf(sums[w * D + d], rescale, joined);
      }
      if (first_chunk == last_chunk) {
        p.out[row * D + d] = joined / all;
      } else {
        float* const part = part_of(row, chunk);
        part[2 + d] = joined;
        if (d == 0) part[0] = peak, part[1] = all;
      }
    }
    __syncthreads();
  }
  if (first_chunk == last_chunk) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(p.tickets + b * p.G + g, 1) == last_chunk - first_chunk;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  if (threadIdx.x == 0) p.tickets[b * p.G + g] = 0;
  for (int i = threadIdx.x; i < group * D; i += kThreads) {
    const int64_t row = b * p.H + g * group + i / D;
    const int d = i % D;
    float peak = -HUGE_VALF, all = 0, joined = 0;
    for (int c = first_chunk; c <= last_chunk; ++c) peak = fmaxf(peak, __ldcg(part_of(row, c)));
    for (int c = first_chunk; c <= last_chunk; ++c) {
      const float rescale = expf(__ldcg(part_of(row, c)) - peak);
      all = fmaf(__ldcg(part_of(row, c) + 1), rescale, all);
      joined = fmaf(__ldcg(part_of(row, c) + 2 + d), rescale, joined);
    }
    p.out[row * D + d] = joined / all;
  }
}

}  // namespace

void cached_attention_forward(const CachedAttention& p) {
  if (p.B == 0) return;
  const dim3 grid(static_cast<unsigned>(CachedAttention::chunks_of(p.capacity)), static_cast<unsigned>(p.G), static_cast<unsigned>(p.B));
  const size_t shared = static_cast<size_t>((p.H / p.G + 2 + kWarps) * p.D) * sizeof(float);
  if (p.dtype == DType::bf16) return start_early(cached_attention_kernel<Bf16>, grid, kThreads, shared, p);
  start_early(cached_attention_kernel<float>, grid, kThreads, shared, p);
}

}  // namespace heed::cuda
