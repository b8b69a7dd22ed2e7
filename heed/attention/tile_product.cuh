// Products of tiles in shared memory, of 64 rows each: by tensor cores (mma.sync m16n8k16) where elements are bf16, by FMA where they are
// f32. A block has four warps; a warp owns 16 rows of a product, and a thread two of them, row(0) and row(1).
//
// Element orders: float[2][16] holds scores (64 x 64), columns score_column<T>(n); float[2][W / 4] holds outputs (64 x W), columns
// output_column<T>(n). The sum over the depth of a score has one order, whichever operand is on the left: hard attention relies on it.
#pragma once

#include <algorithm>

#include "heed/attention/score_block.h"
#include "heed/attention/tile_copies.cuh"
#include "heed/cuda/element.cuh"
#include "heed/cuda/mma.cuh"

namespace heed::cuda {

inline constexpr int kTile = 64, kBlockThreads = 128, kChunk = 64;  // rows of a tile, threads of a block, columns of a chunk

__host__ __device__ constexpr int padded_columns(int64_t width) { return static_cast<int>((width + 15) / 16 * 16); }
// Rows are 16 bytes times an odd number apart: eight rows, 16 bytes of each, are in different banks.
template <class T>
__host__ __device__ constexpr int row_stride(int columns) {
  return columns + 16 / static_cast<int>(sizeof(T));
}

__device__ inline int tile_row(int half) {
  return static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * half;
}

template <class T>
__device__ int score_column(int n) {
  const int t = threadIdx.x % 4;
  if constexpr (sizeof(T) == 2) {
    return n / 2 * 8 + 2 * t + n % 2;
  } else {
    return 4 * n + t;
  }
}
template <class T>
__device__ int output_column(int n) {
  const int t = threadIdx.x % 4;
  if constexpr (sizeof(T) == 2) {
    return n / 2 * 8 + 2 * t + n % 2;
  } else {
    return n / 4 * 16 + 4 * t + n % 4;
  }
}

// Adds a product to columns score_column(at) and the next of both rows.
template <int count>
__device__ void multiply_add(float (&sums)[2][count], int at, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  float c[4] = {sums[0][at], sums[0][at + 1], sums[1][at], sums[1][at + 1]};
  multiply_add(c, a, b0, b1);
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i / 2][at + i % 2] = c[i];
}

// s += a b^T. a, b: (64, depth), depth a multiple of 16
__device__ inline void multiply_rows(float (&s)[2][16], const Bf16* a, int a_stride, const Bf16* b, int b_stride, int depth) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Bf16* left = a + (warp * 16 + lane % 16) * a_stride + lane / 16 * 8;
  const Bf16* right = b + (lane / 16 * 8 + lane % 8) * b_stride + lane / 8 % 2 * 8;
  for (int k = 0; k < depth; k += 16) {
    uint32_t x[4];
    load_matrices(x, left + k);
#pragma unroll
    for (int n = 0; n < 4; ++n) {  // 16 columns
      uint32_t y[4];
      load_matrices(y, right + 16 * n * b_stride + k);
      multiply_add(s, 4 * n, x, y[0], y[1]);
      multiply_add(s, 4 * n + 2, x, y[2], y[3]);
    }
  }
}
__device__ inline void multiply_rows(float (&s)[2][16], const float* a, int a_stride, const float* b, int b_stride, int depth) {
  const float *left[2] = {a + tile_row(0) * a_stride, a + tile_row(1) * a_stride}, *right = b + threadIdx.x % 4 * b_stride;
#pragma unroll 1
  for (int k = 0; k < depth; k += 4) {
    const float4 x[2] = {*reinterpret_cast<const float4*>(left[0] + k), *reinterpret_cast<const float4*>(left[1] + k)};
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      const float4 y = *reinterpret_cast<const float4*>(right + 4 * n * b_stride + k);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        s[r][n] = fmaf(x[r].x, y.x, s[r][n]);
        s[r][n] = fmaf(x[r].y, y.y, s[r][n]);
        s[r][n] = fmaf(x[r].z, y.z, s[r][n]);
        s[r][n] = fmaf(x[r].w, y.w, s[r][n]);
      }
    }
  }
}

// A tile of f32 scores in shared memory: (64, kScoreStride).
inline constexpr int kScoreStride = row_stride<float>(kTile);

template <class T>
__device__ void store_scores(const float (&s)[2][16], float* tile) {
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < 16; ++n) tile[tile_row(r) * kScoreStride + score_column<T>(n)] = s[r][n];
}
template <class T>
__device__ void load_scores(float (&s)[2][16], const float* tile) {
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < 16; ++n) s[r][n] = tile[tile_row(r) * kScoreStride + score_column<T>(n)];
}

// out += weights b in `columns` columns, a multiple of 16 and at most 64, from column `first` of out on. b: (64, columns)
// Weights are rounded to bf16 as b is. f32 weights come from shared memory, where their own warp has stored them: store_weights.
template <int W>
__device__ void multiply_values(float (&out)[2][W / 4], int first, const float (&weights)[2][16], const float*, const Bf16* b, int b_stride,
                                int columns) {
  const int lane = threadIdx.x % 32;
  const Bf16* right = b + (lane / 8 % 2 * 8 + lane % 8) * b_stride + lane / 16 * 8;
  const auto pair = [](float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
  };
#pragma unroll
  for (int k = 0; k < 4; ++k) {  // 16 rows of b
    const uint32_t x[4] = {pair(weights[0][4 * k], weights[0][4 * k + 1]), pair(weights[1][4 * k], weights[1][4 * k + 1]),
                           pair(weights[0][4 * k + 2], weights[0][4 * k + 3]), pair(weights[1][4 * k + 2], weights[1][4 * k + 3])};
#pragma unroll
    for (int n = 0; n < kChunk / 16; ++n)
      if (16 * n < columns) {
        uint32_t y[4];
        load_transposed_matrices(y, right + 16 * k * b_stride + 16 * n);
        const int at = first / 4 + 4 * n;
        multiply_add(out, at, x, y[0], y[1]);
        multiply_add(out, at + 2, x, y[2], y[3]);
      }
  }
}
template <int W>
__device__ void multiply_values(float (&out)[2][W / 4], int first, const float (&)[2][16], const float* tile, const float* b, int b_stride,
                                int columns) {
  const float *left[2] = {tile + tile_row(0) * kScoreStride, tile + tile_row(1) * kScoreStride}, *right = b + threadIdx.x % 4 * 4;
#pragma unroll 1
  for (int k = 0; k < kTile; k += 4) {
    float x[2][4];
#pragma unroll
    for (int r = 0; r < 2; ++r) *reinterpret_cast<float4*>(x[r]) = *reinterpret_cast<const float4*>(left[r] + k);
#pragma unroll
    for (int n = 0; n < kChunk / 16; ++n)
      if (16 * n < columns) {
        const int at = first / 4 + 4 * n;
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          const float4 y = *reinterpret_cast<const float4*>(right + (k + step) * b_stride + 16 * n);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            out[r][at] = fmaf(x[r][step], y.x, out[r][at]);
            out[r][at + 1] = fmaf(x[r][step], y.y, out[r][at + 1]);
            out[r][at + 2] = fmaf(x[r][step], y.z, out[r][at + 2]);
            out[r][at + 3] = fmaf(x[r][step], y.w, out[r][at + 3]);
          }
        }
      }
  }
}

// Lays f32 weights out for multiply_values: rows that only their own warp reads. bf16 weights stay in registers.
template <class T>
__device__ void store_weights(const float (&weights)[2][16], float* tile) {
  if constexpr (sizeof(T) == 4) {
    __syncwarp();
    store_scores<T>(weights, tile);
    __syncwarp();
  }
}

// Tokens whose numbers begin at multiples of 16 bytes.
template <class T>
bool is_aligned(const TokenRows& x) {
  const auto whole = [](int64_t step) { return step * static_cast<int64_t>(sizeof(T)) % 16 == 0; };
  return is_aligned(x.data) && whole(x.item) && whole(x.head) && whole(x.token);
}

// Starts to copy (rows, width) to shared memory: 64 rows and `columns` columns, the rest zero. Columns: a multiple of 16.
template <class T>
__device__ void start_copy(T* to, int stride, const T* from, int64_t token, int rows, int width, int columns, bool aligned) {
  constexpr int vector = 16 / sizeof(T);
  const int vectors = columns / vector;
  for (int index = threadIdx.x; index < kTile * vectors; index += kBlockThreads) {
    const int row = index / vectors, column = (index - row * vectors) * vector;
    T* place = to + row * stride + column;
    const T* source = from + row * token + column;
    const int count = row < rows ? min(max(width - column, 0), vector) : 0;
    if (aligned && (count == vector || count == 0)) {
      copy_16(place, count == 0 ? from : source, count == 0 ? 0 : 16);
    } else {
#pragma unroll
      for (int i = 0; i < vector; ++i) place[i] = i < count ? source[i] : T{};
    }
  }
}
// An operand of products: (rows, width) of some tokens. In shared memory it is whole, or there is one chunk of 64 columns of it.
template <class T>
struct Operand {
  T* shared = nullptr;
  int stride = 0, width = 0;
  bool whole = true, aligned = false;
  const T* from = nullptr;
  int64_t token = 0;
  int rows = 0;

  __device__ int columns() const { return padded_columns(width); }
  __device__ void take(const T* first, int count) {
    from = first;
    rows = min(count, kTile);
  }
  __device__ void start() const {
    if (whole) start_copy(shared, stride, from, token, rows, width, columns(), aligned);
  }
  // Columns from 64 index on. What is not whole is fetched: then every thread must be here, and none may use the former chunk any more
  // after its own next barrier.
  __device__ const T* chunk(int index) const {
    if (whole) return shared + index * kChunk;
    __syncthreads();
    start_copy(shared, stride, from + index * kChunk, token, rows, width - index * kChunk, min(kChunk, columns() - index * kChunk),
               aligned);
    end_group();
    wait_for_copies();
    __syncthreads();
    return shared;
  }
};

// s = a b^T over all columns.
template <class T>
__device__ void multiply_operands(float (&s)[2][16], const Operand<T>& a, const Operand<T>& b) {
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < 16; ++n) s[r][n] = 0;
  for (int c = 0; c * kChunk < a.columns(); ++c) {
    const T *left = a.chunk(c), *right = b.chunk(c);
    multiply_rows(s, left, a.stride, right, b.stride, min(kChunk, a.columns() - c * kChunk));
  }
}

// out += weights b, in W columns from column `first` of b on, a multiple of 64.
template <int W, class T>
__device__ void multiply_operand(float (&out)[2][W / 4], const float (&weights)[2][16], const float* tile, const Operand<T>& b, int first) {
#pragma unroll
  for (int c = 0; c < W / kChunk; ++c)
    if (const int columns = b.columns() - first - c * kChunk; columns > 0)
      multiply_values<W>(out, c * kChunk, weights, tile, b.chunk(first / kChunk + c), b.stride, min(kChunk, columns));
}

// Rows of sums times a factor each, to tokens: columns [first, first + W) of `width`.
template <int W, class T>
__device__ void store_rows(const float (&sums)[2][W / 4], const float (&factors)[2], T* to, int64_t token, int rows, int first, int width,
                           bool aligned) {
  constexpr int run = sizeof(T) == 2 ? 2 : 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (tile_row(r) >= rows) continue;
    T* row = to + tile_row(r) * token;
#pragma unroll
    for (int n = 0; n < W / 4; n += run) {
      const int column = first + output_column<T>(n);
      if (aligned && column + run <= width) {
        if constexpr (sizeof(T) == 2) {
          *reinterpret_cast<__nv_bfloat162*>(row + column) = __floats2bfloat162_rn(sums[r][n] * factors[r], sums[r][n + 1] * factors[r]);
        } else {
          *reinterpret_cast<float4*>(row + column) =
              make_float4(sums[r][n] * factors[r], sums[r][n + 1] * factors[r], sums[r][n + 2] * factors[r], sums[r][n + 3] * factors[r]);
        }
      } else {
#pragma unroll
        for (int i = 0; i < run; ++i)
          if (column + i < width) store(row + column + i, sums[r][n + i] * factors[r]);
      }
    }
  }
}

}  // namespace heed::cuda
