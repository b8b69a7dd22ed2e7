// Warps take columns of the result, which are rows of the weight, and read them 16 bytes at a time, several packs in flight. The first
// packs are fetched before the kernel waits for x: weights are constants.
#include "heed/ops/row_linear.h"

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/early_launch.cuh"
#include "heed/cuda/raw_pack.cuh"
#include "heed/ops/epilogue.cuh"

namespace heed::cuda {
namespace {

constexpr int kWarps = 4, kThreads = kWarps * 32;

constexpr int blocks_at_once(int rows) { return rows == 1 ? 6 : 4; }  // on a multiprocessor

// Where input k is in shared memory: groups of four numbers, ordered so that the lanes of a warp read without bank conflicts.
template <int kCount>
__device__ inline int place_of(int k, int packs) {
  return (k % kCount / 4 * packs + k / kCount) * 4 + k % 4;
}

// Copies the rows of x to shared memory, normalized. Each team of warps takes every kTeams-th row.
template <int kCount, int kRows>
__device__ void stage_rows(const RowLinear& p, int packs, float* to) {
  constexpr int kTeams = kRows < kWarps ? kRows : kWarps, kTeam = kWarps / kTeams;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, I = static_cast<int>(p.I), padded = packs * kCount;
  for (int row = warp / kTeam; row < p.rows; row += kTeams) {
    const float* const x = p.x + row * p.I;
    float mean = 0, scale = 1;
    if (p.norm_weight) {  // each warp of the team computes all of it
      if (p.norm_bias) {
        float sum = 0;
        for (int k = lane * 4; k < I; k += 128) {
          const Pack<float> some = load_pack(x + k);
          sum += (some.values[0] + some.values[1]) + (some.values[2] + some.values[3]);
        }
        mean = warp_sum(sum) / static_cast<float>(I);
      }
      float square = 0;
      for (int k = lane * 4; k < I; k += 128) {
        const Pack<float> some = load_pack(x + k);
#pragma unroll
        for (int i = 0; i < 4; ++i) square = fmaf(some.values[i] - mean, some.values[i] - mean, square);
      }
      scale = rsqrtf(warp_sum(square) / static_cast<float>(I) + p.eps);
    }
    for (int k = (warp % kTeam * 32 + lane) * 4; k < padded; k += kTeam * 128) {
      Pack<float> some{};
      if (k < I) {
        some = load_pack(x + k);
        if (p.norm_weight) {
          const Pack<float> weight = load_pack(p.norm_weight + k), bias = p.norm_bias ? load_pack(p.norm_bias + k) : Pack<float>{};
#pragma unroll
          for (int i = 0; i < 4; ++i) some.values[i] = fmaf((some.values[i] - mean) * scale, weight.values[i], bias.values[i]);
        }
      }
      store_pack(to + row * padded + place_of<kCount>(k, packs), some);
    }
  }
}

// A warp takes kColumns columns at a time, for up to kRows rows; its lanes share the inputs, with kAhead packs each in flight.
template <class W, int kRows, int kColumns, int kAhead>
__global__ void __launch_bounds__(kThreads, blocks_at_once(kRows)) row_linear_kernel(const __grid_constant__ RowLinear p) {
  constexpr int kCount = WeightPack<W>::kCount;
  extern __shared__ __align__(16) float inputs[];  // (rows, padded I)
  const int lane = threadIdx.x % 32, packs = static_cast<int>(p.stride) / kCount;
  const int64_t step = int64_t{gridDim.x} * kWarps * kColumns;
  int64_t column = (int64_t{blockIdx.x} * kWarps + threadIdx.x / 32) * kColumns;
  const W* const weight = static_cast<const W*>(p.weight);
  WeightPack<W> ahead[kAhead][kColumns];
  const auto fetch = [&](int u, int64_t n, int pack) {
    if (n >= p.O || pack >= packs) return;
#pragma unroll
    for (int c = 0; c < kColumns; ++c)  // past the last column: the last one again, which is not stored
      ahead[u][c].load(weight + (n + c < p.O ? n + c : p.O - 1) * p.stride + int64_t{pack} * kCount);
  };
  allow_next();
#pragma unroll
  for (int u = 0; u < kAhead; ++u) fetch(u, column, lane + u * 32);
  wait_for_previous();
  stage_rows<kCount, kRows>(p, packs, inputs);
  __syncthreads();

  for (; column < p.O; column += step) {
    // Lane m * kColumns + c finishes row m of column c.
    const int64_t m = lane / kColumns, n = column + lane % kColumns, at = m * p.O + n;
    const bool finishes = m < kRows && m < p.rows && n < p.O;
    const float residual = finishes && p.residual ? p.residual[at] : 0, factor = finishes && p.factor ? p.factor[at] : 1,
                bias = finishes && p.bias ? p.bias[n] : 0, scale = finishes && p.scales ? p.scales[n] : 1;
    float sums[kRows][kColumns] = {};
    for (int first = 0; first < packs; first += 32 * kAhead) {  // by all lanes, because each fetches its next packs
      const bool last = first + 32 * kAhead >= packs;           // then those are of the next columns
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int pack = first + lane + u * 32;
        if (pack < packs) {
#pragma unroll
          for (int row = 0; row < kRows; ++row) {
            if (row >= p.rows) break;
#pragma unroll
            for (int i = 0; i < kCount; i += 4) {
              const Pack<float> x = load_pack(inputs + row * packs * kCount + (i / 4 * packs + pack) * 4);
#pragma unroll
              for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int c = 0; c < kColumns; ++c) sums[row][c] = fmaf(x.values[j], ahead[u][c].value(i + j), sums[row][c]);
            }
          }
        }
        fetch(u, last ? column + step : column, last ? lane + u * 32 : pack + 32 * kAhead);
      }
    }
    float mine = 0;
#pragma unroll
    for (int row = 0; row < kRows; ++row)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const float sum = warp_sum(sums[row][c]);
        if (lane == row * kColumns + c) mine = sum;
      }
    if (finishes) p.out[at] = fmaf(activate(p.activation, fmaf(mine, scale, bias)), factor, residual);
  }
}

template <class W, int kRows, int kColumns, int kAhead>
void run_row_linear(const RowLinear& p) {
  const int64_t blocks = divide_up<int64_t>(p.O, kWarps * kColumns);
  const size_t shared = static_cast<size_t>(p.rows * p.stride) * sizeof(float);
  const int64_t most = int64_t{multiprocessor_count()} * blocks_at_once(kRows);
  start_early(row_linear_kernel<W, kRows, kColumns, kAhead>, static_cast<unsigned>(std::min(blocks, most)), kThreads, shared, p);
}

template <class W>
void row_linear_of(const RowLinear& p) {
  const bool wide = p.O >= 8192, deep = p.stride * static_cast<int64_t>(sizeof(W)) > 4 * 512;
  if (p.rows > 4) return run_row_linear<W, 8, 2, 3>(p);
  if (p.rows > 2) return run_row_linear<W, 4, 2, 3>(p);
  if (p.rows > 1) return run_row_linear<W, 2, 2, 3>(p);
  if (wide) return run_row_linear<W, 1, 2, 3>(p);
  if (deep) return run_row_linear<W, 1, 1, 6>(p);
  run_row_linear<W, 1, 1, 3>(p);
}

}  // namespace

void row_linear_forward(const RowLinear& args) {
  if (args.rows == 0 || args.O == 0) return;
  switch (args.dtype) {
    case DType::bf16: return row_linear_of<Bf16>(args);
    case DType::u8: return row_linear_of<int8_t>(args);
    default: return row_linear_of<float>(args);
  }
}

}  // namespace heed::cuda
