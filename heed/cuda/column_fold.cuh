// Folding the columns of a matrix in one kernel: blocks fold parts of the rows, and the last block to arrive joins what the blocks of its
// columns have found, in the order of the parts. Blocks have threads in x along the columns and in y along the rows.
#pragma once

#include "heed/cuda/row.cuh"

namespace heed::cuda {
namespace {

constexpr int64_t kMostStrips = 4096;       // groups of columns, each folded by several blocks
__device__ unsigned arrivals[kMostStrips];  // blocks that have found their part; 0 between kernels

}  // namespace

// Threads y = 0 get the results of all y, joined in a tree. found: n floats for every thread, free to be used again after a barrier.
template <int n, class Join>
__device__ void fold_threads(float* found, Floats<n>& mine, Join join) {
  const auto place = [&](unsigned y, int k) -> float& { return found[(y * n + k) * blockDim.x + threadIdx.x]; };
#pragma unroll
  for (int k = 0; k < n; ++k) place(threadIdx.y, k) = mine.values[k];
  for (unsigned rows = blockDim.y / 2; rows > 0; rows /= 2) {
    __syncthreads();
    if (threadIdx.y < rows)
#pragma unroll
      for (int k = 0; k < n; ++k) {
        mine.values[k] = join(mine.values[k], place(threadIdx.y + rows, k));
        place(threadIdx.y, k) = mine.values[k];
      }
  }
}

// Whether this block is the last one of its strip, so that all parts are in memory.
__device__ inline bool is_last_to_arrive(int64_t strip, int64_t parts) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    last = atomicAdd(&arrivals[strip], 1u) == parts - 1;
    if (last) arrivals[strip] = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// n floats that another block wrote.
template <int n>
__device__ Floats<n> load_found(const float* from) {
  Floats<n> all;
  if constexpr (n == 1) {
    all.values[0] = __ldcg(from);
  } else {
#pragma unroll
    for (int k = 0; k < n; k += 4) {
      const float4 x = __ldcg(reinterpret_cast<const float4*>(from + k));
      all.values[k] = x.x, all.values[k + 1] = x.y, all.values[k + 2] = x.z, all.values[k + 3] = x.w;
    }
  }
  return all;
}

// What the blocks of one matrix share.
struct ColumnParts {
  float* y;      // (columns)
  float* found;  // (parts, columns)
  int64_t parts, columns;
};

// Joins what this thread found in its rows of n columns from `column` with all the rest. strip: the number of the block's columns. scratch:
// n floats for every thread.
template <int n, class Join>
__device__ void fold_parts(const ColumnParts& p, int64_t part, int64_t strip, int64_t column, Floats<n> mine, Join join, float start,
                           float* scratch) {
  fold_threads(scratch, mine, join);
  const bool inside = column < p.columns, writes = inside && threadIdx.y == 0;
  if (p.parts == 1) {
    if (writes) store_some(p.y + column, mine);
    return;
  }
  if (writes) store_some(p.found + part * p.columns + column, mine);
  if (!is_last_to_arrive(strip, p.parts)) return;
  for (float& m : mine.values) m = start;
  if (inside)
#pragma unroll 8
    for (int64_t other = threadIdx.y; other < p.parts; other += blockDim.y) {
      const auto value = load_found<n>(p.found + other * p.columns + column);
#pragma unroll
      for (int k = 0; k < n; ++k) mine.values[k] = join(mine.values[k], value.values[k]);
    }
  fold_threads(scratch, mine, join);
  if (writes) store_some(p.y + column, mine);
}

}  // namespace heed::cuda
