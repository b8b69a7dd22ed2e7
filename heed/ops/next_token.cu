#include "heed/ops/next_token.h"

#include <cfloat>

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/early_launch.cuh"

namespace heed::cuda {
namespace {

constexpr int kEmbedThreads = 256, kBestThreads = 1024, kAhead = 8;

__global__ void __launch_bounds__(kEmbedThreads) embed_kernel(const __grid_constant__ EmbedLastTokens p) {
  allow_next();
  const int64_t d = int64_t{blockIdx.x} * kEmbedThreads + threadIdx.x, b = blockIdx.y;
  if (d >= p.D) return;
  const int64_t token = p.last[b];
  const float position = p.positions ? p.positions[p.lengths[b] * p.D + d] : 0;
  p.out[b * p.D + d] = token < 0 ? __uint_as_float(0x7fc00000u) : p.table[token * p.D + d] + position;
}

// A score and its token; the larger score, of equal ones the smaller token.
struct Candidate {
  float score;
  int token;
};
struct Better {
  __device__ Candidate operator()(const Candidate& a, const Candidate& b) const {
    return b.score > a.score || (b.score == a.score && b.token < a.token) ? b : a;
  }
};
__device__ Candidate shuffled(const Candidate& x, int step) {
  return {__shfl_xor_sync(kFullWarp, x.score, step), __shfl_xor_sync(kFullWarp, x.token, step)};
}
__device__ Candidate best_of_warp(Candidate x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = Better()(x, shuffled(x, step));
  return x;
}

// A block takes a sequence.
__global__ void __launch_bounds__(kBestThreads) append_best_kernel(const __grid_constant__ AppendBestTokens p) {
  __shared__ Candidate of_warps[32];
  wait_for_previous();
  const int64_t b = blockIdx.x;
  const float* const row = p.logits + b * p.V;
  const int V = static_cast<int>(p.V), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Candidate best{-HUGE_VALF, V};
  bool finite = true;
  for (int first = threadIdx.x; first < V; first += kBestThreads * kAhead) {
    float some[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) some[u] = first + u * kBestThreads < V ? row[first + u * kBestThreads] : -FLT_MAX;
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      finite = finite && isfinite(some[u]);
      const int token = first + u * kBestThreads;
      if (some[u] > best.score && token < V) best = {some[u], token};
    }
  }
  finite = __syncthreads_and(finite);
  best = best_of_warp(best);
  if (lane == 0) of_warps[warp] = best;
  __syncthreads();
  if (warp > 0) return;
  best = best_of_warp(of_warps[lane]);
  if (lane > 0) return;
  const int64_t token = finite ? best.token : -1, length = p.lengths[b] + 1;
  p.last[b] = token;
  p.lengths[b] = length;
  p.all[b * p.capacity + length] = token;
}

}  // namespace

// Not early: later kernels read the tokens and lengths of the step before without waiting.
void embed_last(const EmbedLastTokens& p) {
  if (p.B == 0) return;
  start(embed_kernel, dim3(static_cast<unsigned>(divide_up<int64_t>(p.D, kEmbedThreads)), static_cast<unsigned>(p.B)), kEmbedThreads, 0, p);
}

void append_best(const AppendBestTokens& p) {
  if (p.B == 0) return;
  start_early(append_best_kernel, static_cast<unsigned>(p.B), kBestThreads, 0, p);
}

}  // namespace heed::cuda
