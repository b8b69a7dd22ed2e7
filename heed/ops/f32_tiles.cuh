// Tiled f32 products on the CUDA cores. The operands need not be matrices in memory: convolutions compute where an element is.
#pragma once

#include "heed/cuda/launch.cuh"
#include "heed/ops/tile_plan.h"

namespace heed::cuda {

// A Problem has two operands, types Left (M, K) and Right (K, N), and says where sums go:
//   Left left(item), Right right(item)
//   Output output(part, item)                           which has
//     column(n)                                         what depends on the column alone
//     void store(m, what column gave, float sum)
// An operand is read along lines: rows of the left one, columns of the right one. It has
//   kAlongK                                             whether consecutive k are neighbours in memory, or consecutive lines
//   Line line(index), Depth depth(k)                    what depends on the line or on k alone; index may be past the last line
//   float load(Line, Depth)                             0 past the last line
inline constexpr int kTileThreads = 256;

// Reads kLines lines of an operand, kDepth deep: first into registers, then into shared memory.
template <class Operand, int kLines, int kDepth>
struct TileReader {
  static constexpr int kEach = kLines * kDepth / kTileThreads;
  using Line = typename Operand::Line;

  // Along K, a thread keeps its k and takes line after line from shared memory; otherwise it keeps its line.
  Line* lines;
  Line mine;

  __device__ void start(const Operand& operand, int64_t first, Line* shared) {
    lines = shared;
    if constexpr (Operand::kAlongK) {
      for (int i = threadIdx.x; i < kLines; i += kTileThreads) lines[i] = operand.line(first + i);
    } else {
      mine = operand.line(first + threadIdx.x % kLines);
    }
  }
  __device__ static int line_of(int i) {
    return Operand::kAlongK ? threadIdx.x / kDepth + i * (kTileThreads / kDepth) : threadIdx.x % kLines;
  }
  __device__ static int depth_of(int i) {
    return Operand::kAlongK ? threadIdx.x % kDepth : threadIdx.x / kLines + i * (kTileThreads / kLines);
  }
  // From begin + first on; from begin + end on there are zeros.
  __device__ void fetch(const Operand& operand, int64_t begin, int first, int end, float (&values)[kEach]) const {
    if constexpr (Operand::kAlongK) {
      const int k = first + depth_of(0);
      const auto depth = operand.depth(begin + (k < end ? k : end - 1));
#pragma unroll
      for (int i = 0; i < kEach; ++i) values[i] = k < end ? operand.load(lines[line_of(i)], depth) : 0;
    } else {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int k = first + depth_of(i);
        values[i] = k < end ? operand.load(mine, operand.depth(begin + k)) : 0;
      }
    }
  }
  // Four more than kLines: rows stay aligned to 16 bytes, and writes along K meet few banks twice.
  __device__ static void put(const float (&values)[kEach], float (*tile)[kLines + 4]) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) tile[depth_of(i)][line_of(i)] = values[i];
  }
};

// A thread has groups of 4 by 4 sums, 64 rows and columns apart.
template <class Problem, int kRows, int kColumns>
__global__ void __launch_bounds__(kTileThreads, 2)
    f32_tile_kernel(const Problem problem, const TilePlan plan, unsigned row_tiles, unsigned column_tiles) {
  constexpr int down = kRows / 16, across = kColumns / 16, kDepth = kRows * kColumns < 128 * 128 ? 16 : 8;  // registers are few
  using Left = typename Problem::Left;
  using Right = typename Problem::Right;
  using LeftReader = TileReader<Left, kRows, kDepth>;
  using RightReader = TileReader<Right, kColumns, kDepth>;
  __shared__ __align__(16) float left[2][kDepth][kRows + 4];
  __shared__ __align__(16) float right[2][kDepth][kColumns + 4];
  __shared__ typename Left::Line left_lines[Left::kAlongK ? kRows : 1];
  __shared__ typename Right::Line right_lines[Right::kAlongK ? kColumns : 1];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const unsigned tile = blockIdx.x, others = tile / row_tiles / column_tiles;
  const int row = static_cast<int>(tile % row_tiles) * kRows, column = static_cast<int>(tile / row_tiles % column_tiles) * kColumns;
  const int64_t item = others % plan.items, part = others / plan.items, begin = part * plan.depth;
  const int depth = static_cast<int>(plan.depth < plan.K - begin ? plan.depth : plan.K - begin);  // of this part
  const Left from_left = problem.left(item);
  const Right from_right = problem.right(item);
  LeftReader left_reader;
  RightReader right_reader;
  left_reader.start(from_left, row, left_lines);
  right_reader.start(from_right, column, right_lines);
  __syncthreads();
  float next_left[LeftReader::kEach], next_right[RightReader::kEach], sums[down][across] = {};
  left_reader.fetch(from_left, begin, 0, depth, next_left);
  right_reader.fetch(from_right, begin, 0, depth, next_right);
  LeftReader::put(next_left, left[0]);
  RightReader::put(next_right, right[0]);
  __syncthreads();
  int now = 0;
  for (int k = 0; k < depth; k += kDepth, now ^= 1) {
    const bool more = k + kDepth < depth;
    if (more) {
      left_reader.fetch(from_left, begin, k + kDepth, depth, next_left);
      right_reader.fetch(from_right, begin, k + kDepth, depth, next_right);
    }
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      alignas(16) float a[down], b[across];
#pragma unroll
      for (int i = 0; i < down; i += 4) *reinterpret_cast<float4*>(a + i) = *reinterpret_cast<const float4*>(&left[now][d][i * 16 + y * 4]);
#pragma unroll
      for (int j = 0; j < across; j += 4)
        *reinterpret_cast<float4*>(b + j) = *reinterpret_cast<const float4*>(&right[now][d][j * 16 + x * 4]);
#pragma unroll
      for (int i = 0; i < down; ++i)
#pragma unroll
        for (int j = 0; j < across; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
    if (more) {
      LeftReader::put(next_left, left[now ^ 1]);
      RightReader::put(next_right, right[now ^ 1]);
    }
    __syncthreads();
  }
  const auto output = problem.output(part, item);
#pragma unroll
  for (int j = 0; j < across; ++j) {
    const int n = column + j / 4 * 64 + x * 4 + j % 4;
    if (n >= plan.N) continue;
    const auto at = output.column(n);
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const int m = row + i / 4 * 64 + y * 4 + i % 4;
      if (m < plan.M) output.store(m, at, sums[i][j]);
    }
  }
}

template <class Problem>
void run_f32_tiles(const Problem& problem, const TilePlan& plan) {
  const int64_t tiles = plan.tiles();
  if (tiles == 0) return;
  check(tiles <= INT32_MAX && plan.M <= INT32_MAX - 128 && plan.N <= INT32_MAX - 128 && plan.depth <= INT32_MAX - 128,
        "matrix product: ", plan.M, " x ", plan.K, " x ", plan.N, " is too large");
  const auto run = [&](auto kernel) {
    start(kernel, static_cast<unsigned>(tiles), kTileThreads, 0, problem, plan, static_cast<unsigned>(plan.row_tiles()),
          static_cast<unsigned>(plan.column_tiles()));
  };
  if (plan.rows == 128) return run(f32_tile_kernel<Problem, 128, 128>);
  if (plan.columns == 128) return run(f32_tile_kernel<Problem, 64, 128>);
  run(f32_tile_kernel<Problem, 64, 64>);
}

}  // namespace heed::cuda
