// Sums and maxima over a warp and over a block. The order is fixed, so the bits are the same in every run.
#pragma once

#include <cstdint>

namespace heed::cuda {

inline constexpr unsigned kFullWarp = 0xffffffffu;

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Every lane gets the result. A butterfly: all lanes add the same pairs, so all have the same bits.
template <class T, class Combine>
__device__ T warp_reduce(T x, Combine combine) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = combine(x, __shfl_xor_sync(kFullWarp, x, step));
  return x;
}
template <class T>
__device__ T warp_sum(T x) {
  return warp_reduce(x, Add());
}
__device__ inline float warp_max(float x) { return warp_reduce(x, Max()); }

// Every thread of a block (x only, a multiple of 32 threads, at most 1024) gets the result. `scratch`: 32 elements of shared memory, free
// again afterwards.
template <class T, class Combine>
__device__ T block_reduce(T x, T* scratch, Combine combine, T neutral) {
  x = warp_reduce(x, combine);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  x = warp_reduce(lane < warps ? scratch[lane] : neutral, combine);
  __syncthreads();
  return x;
}
template <class T>
__device__ T block_sum(T x, T* scratch) {
  return block_reduce(x, scratch, Add(), T(0));
}

}  // namespace heed::cuda
