// heed's own tiled products, for machines without cuBLASLt and for layouts that it does not take: any sizes, strides and alignment.
#pragma once

#include "heed/cuda/element.cuh"
#include "heed/cuda/mma.cuh"
#include "heed/ops/f32_tiles.cuh"
#include "heed/ops/gemm.h"

namespace heed::cuda {

// Where the sums of one item go: c = sum + bias, or c += sum.
struct StoreSums {
  void* c;
  const float* bias;
  const Bf16* narrow_bias;  // where bias is null
  int64_t stride;
  bool narrow, add;

  __device__ StoreSums(const Gemm& g, int64_t item)
      : bias(g.bias), narrow_bias(g.bias ? nullptr : g.narrow_bias), stride(g.c.stride), narrow(g.c.dtype == DType::bf16), add(g.add) {
    c = static_cast<char*>(g.c.data) + g.item_offset(g.c, item) * (narrow ? 2 : 4);
  }
  __device__ int64_t column(int64_t n) const { return n; }
  __device__ void store(int64_t row, int64_t column, float sum) const {
    if (bias) sum += bias[column];
    if (narrow_bias) sum += load(narrow_bias + column);
    if (narrow) {
      put(static_cast<Bf16*>(c) + row * stride + column, sum);
    } else {
      put(static_cast<float*>(c) + row * stride + column, sum);
    }
  }
  template <class T>
  __device__ void put(T* to, float sum) const {
    cuda::store(to, add ? load(to) + sum : sum);
  }
};

// A matrix of `count` lines that are read along k, or across.
template <bool kDense>
struct PlainOperand {
  static constexpr bool kAlongK = kDense;
  using Line = int64_t;  // the first element, or -1
  using Depth = int64_t;

  const float* data;
  int64_t stride, count;

  __device__ Line line(int64_t i) const { return i < count ? (kDense ? i * stride : i) : -1; }
  __device__ Depth depth(int64_t k) const { return kDense ? k : k * stride; }
  __device__ float load(Line line, Depth depth) const { return line >= 0 ? data[line + depth] : 0; }
};

template <bool kLeftDense, bool kRightDense>
struct PlainProblem {
  using Left = PlainOperand<kLeftDense>;
  using Right = PlainOperand<kRightDense>;
  Gemm g;

  __device__ Left left(int64_t item) const { return {static_cast<const float*>(g.a.data) + g.item_offset(g.a, item), g.a.stride, g.M}; }
  __device__ Right right(int64_t item) const { return {static_cast<const float*>(g.b.data) + g.item_offset(g.b, item), g.b.stride, g.N}; }
  __device__ StoreSums output(int64_t, int64_t item) const { return {g, item}; }
};

inline constexpr int kMmaLines = 128, kMmaDepth = 32, kMmaThreads = 256;

// 128 lines of a bf16 operand, 32 deep. Eight elements are read at a time. Shared memory has the order of global memory, [line][k] or
// [k][line], in rows of such a length that eight of them start in different banks.
template <bool kDense>
struct MmaOperand {
  static constexpr int kRow = kDense ? kMmaDepth + 8 : kMmaLines + 8, kCount = (kDense ? kMmaLines : kMmaDepth) * kRow;
  static constexpr int kPacks = kMmaLines * kMmaDepth / 8 / kMmaThreads, kPacksOfRow = (kDense ? kMmaDepth : kMmaLines) / 8;

  const Bf16* data;
  int64_t stride, lines, K;
  bool aligned;  // rows start at multiples of 16 bytes

  __device__ void fetch(int64_t first_line, int64_t first_k, uint4 (&packs)[kPacks]) const {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = threadIdx.x + i * kMmaThreads, row = pack / kPacksOfRow, column = pack % kPacksOfRow * 8;
      const int64_t down = (kDense ? first_line : first_k) + row, along = (kDense ? first_k : first_line) + column;
      const int64_t height = kDense ? lines : K, width = kDense ? K : lines;
      const Bf16* const from = data + down * stride + along;
      packs[i] = make_uint4(0, 0, 0, 0);
      if (down >= height || along >= width) continue;
      if (aligned && along + 8 <= width) {
        packs[i] = *reinterpret_cast<const uint4*>(from);
      } else {
        uint32_t words[4] = {};
#pragma unroll
        for (int j = 0; j < 8; ++j)
          if (along + j < width) words[j / 2] |= uint32_t{from[j].bits} << (j % 2 * 16);
        packs[i] = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }
  __device__ static void put(const uint4 (&packs)[kPacks], Bf16* shared) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = threadIdx.x + i * kMmaThreads;
      *reinterpret_cast<uint4*>(shared + pack / kPacksOfRow * kRow + pack % kPacksOfRow * 8) = packs[i];
    }
  }
  // Four 8 x 8 matrices from (line, k) on; lane l names a row of matrix l / 8. Order 0: the second one is 8 lines further, the third 8
  // further in k, as in the left operand; order 1: the other way, which gives the right operand for two times 8 columns.
  template <int kOrder>
  __device__ static void fragments(uint32_t (&to)[4], const Bf16* shared, int line, int k) {
    const int lane = threadIdx.x % 32, matrix = lane / 8, row = lane % 8;
    const int line_block = line + (kOrder == 0 ? matrix % 2 : matrix / 2) * 8, k_block = k + (kOrder == 0 ? matrix / 2 : matrix % 2) * 8;
    if constexpr (kDense) {
      load_matrices(to, shared + (line_block + row) * kRow + k_block);
    } else {
      load_transposed_matrices(to, shared + (k_block + row) * kRow + line_block);
    }
  }
};

// Eight warps, each with 64 rows by 32 columns of a tile of 128 by 128.
template <bool kLeftDense, bool kRightDense>
__global__ void __launch_bounds__(kMmaThreads) bf16_tile_kernel(const Gemm g, bool left_aligned, bool right_aligned, int64_t tiles) {
  using Left = MmaOperand<kLeftDense>;
  using Right = MmaOperand<kRightDense>;
  __shared__ __align__(16) Bf16 left[2][Left::kCount];
  __shared__ __align__(16) Bf16 right[2][Right::kCount];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
  const int64_t row_tiles = divide_up<int64_t>(g.M, kMmaLines), column_tiles = divide_up<int64_t>(g.N, kMmaLines);
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t row = tile % row_tiles * kMmaLines, column = tile / row_tiles % column_tiles * kMmaLines;
    const int64_t item = tile / (row_tiles * column_tiles);
    const Left a{static_cast<const Bf16*>(g.a.data) + g.item_offset(g.a, item), g.a.stride, g.M, g.K, left_aligned};
    const Right b{static_cast<const Bf16*>(g.b.data) + g.item_offset(g.b, item), g.b.stride, g.N, g.K, right_aligned};
    uint4 next_left[Left::kPacks], next_right[Right::kPacks];
    float sums[4][4][4] = {};
    a.fetch(row, 0, next_left);
    b.fetch(column, 0, next_right);
    Left::put(next_left, left[0]);
    Right::put(next_right, right[0]);
    __syncthreads();
    int now = 0;
    for (int64_t k = 0; k < g.K; k += kMmaDepth, now ^= 1) {
      const bool more = k + kMmaDepth < g.K;
      if (more) {
        a.fetch(row, k + kMmaDepth, next_left);
        b.fetch(column, k + kMmaDepth, next_right);
      }
#pragma unroll
      for (int d = 0; d < kMmaDepth; d += 16) {
        uint32_t x[4][4], y[2][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) Left::template fragments<0>(x[i], left[now], warp_row + i * 16, d);
#pragma unroll
        for (int j = 0; j < 2; ++j) Right::template fragments<1>(y[j], right[now], warp_column + j * 16, d);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) multiply_add(sums[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
      }
      if (more) {
        Left::put(next_left, left[now ^ 1]);
        Right::put(next_right, right[now ^ 1]);
      }
      __syncthreads();
    }
    const StoreSums output(g, item);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int64_t m = row + warp_row + i * 16 + lane / 4 + e / 2 * 8, n = column + warp_column + j * 8 + lane % 4 * 2 + e % 2;
          if (m < g.M && n < g.N) output.store(m, n, sums[i][j][e]);
        }
  }
}

}  // namespace heed::cuda
