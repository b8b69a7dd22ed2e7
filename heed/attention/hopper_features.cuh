// Gaussian2d as a product of 16 features of the query and 16 of the key: one more step of q k^T on the tensor cores. With the query at r
// and the key at c, both from the grid's middle, r also less the center:
//   -alpha |r - c|^2 = 2 alpha r.c - alpha |c|^2 - alpha |r|^2
// Factors of the query are f32 split into three bf16; |c|^2 is the sum of two, h + l. Features of a key:
//   c_row c_column h l 1 c_row c_column c_row c_column h l h 1 1 0 0
// Sums of dS times the first five give the gradients of alpha and center.
#pragma once

#include "heed/attention/hopper_tiles.cuh"

namespace heed::cuda {

struct GridPoint {
  float row, column;
  __device__ __forceinline__ float square() const { return fmaf(row, row, column * column); }
};
// Of a token, from the grid's middle.
__device__ __forceinline__ GridPoint grid_point(const HopperGaussian& t, int token) {
  const int width = static_cast<int>(t.args.width), row = token / width;
  return {static_cast<float>(row) - t.middle_row, static_cast<float>(token - row * width) - t.middle_column};
}
__device__ __forceinline__ GridPoint query_point(const HopperGaussian& t, int h, int token) {
  const GridPoint p = grid_point(t, token);
  return {p.row - t.args.center[2 * h], p.column - t.args.center[2 * h + 1]};
}

inline constexpr int kGaussianSums = 3;  // of alpha, center by rows, center by columns
// x, y: sums over the keys of dS times their features 2 n and 2 n + 1, of the query at r. alpha of the center's is left out.
__device__ __forceinline__ void add_feature_sums(float (&sums)[kGaussianSums], float x, float y, GridPoint r, int n) {
  if (n == 0) {
    sums[0] += 2 * (r.row * x + r.column * y);
    sums[1] -= x;
    sums[2] -= y;
  } else if (n == 1) {
    sums[0] -= x + y;
  } else if (n == 2) {
    sums[0] -= r.square() * x;
    sums[1] += r.row * x;
    sums[2] += r.column * x;
  }
}

}  // namespace heed::cuda
