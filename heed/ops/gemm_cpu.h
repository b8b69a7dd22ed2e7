// Matrix products for CPU kernels: oneDNN's sgemm on tiles that depend on the shape alone, one tile per task, and heed's own kernels if
// nothing is reused (gemv.h) or if the epilogue costs as much as the product (packed_gemm.h).
#pragma once

#include <cstdint>
#include <functional>

#include "heed/ops/gemm.h"

namespace heed {

// Element (row, column) is data[row * stride + column], or data[column * stride + row] if transposed.
struct Matrix {
  float* data;
  int64_t stride;
  bool transposed = false;
};

// A part of the result, computed by one task.
struct Tile {
  int64_t row, rows, column, columns;
};

// Called for each tile while it is in cache.
using Epilogue = std::function<void(int64_t item, const Tile& tile)>;

// c = a b + bias for `batch` independent products. a: (M, K), b: (K, N), c: (M, N) not transposed.
struct Products {
  int64_t batch = 1, M = 0, N = 0, K = 0;
  std::function<void(int64_t item, Matrix& a, Matrix& b, Matrix& c)> operands;  // sets the three matrices of one product
  const float* bias = nullptr;                                                  // (N) or null
  Epilogue after = {};
  bool add = false;  // c += a b
};

namespace cpu {
void gemm(const Products& products);
void gemm(int64_t M, int64_t N, int64_t K, Matrix a, Matrix b, Matrix c, bool add = false);
}  // namespace cpu

}  // namespace heed
