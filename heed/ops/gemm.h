// Matrix products for kernels: oneDNN's sgemm on tiles that depend on the shape alone, one tile a task; kernels of our own
// where there is nothing to reuse (gemv.h) or where finishing the result costs as much as the product.
#pragma once

#include <cstdint>
#include <functional>

#include "heed/core/tensor.h"

namespace heed {

// A matrix in memory: element (row, column) at data[row * stride + column], or, transposed, at data[column * stride + row].
struct Matrix {
  float* data;
  int64_t stride;
  bool transposed = false;
};

// A part of the result, as the task that computed it sees it.
struct Tile {
  int64_t row, rows, column, columns;
};

using Epilogue = std::function<void(int64_t item, const Tile& tile)>;

// c = a b for `batch` independent products. a: (M, K), b: (K, N), c: (M, N) not transposed.
// `operands(item, a, b, c)` sets the three for one product; `after(item, tile)`, if any, runs while the tile is in cache.
struct Products {
  int64_t batch = 1, M = 0, N = 0, K = 0;
  std::function<void(int64_t item, Matrix& a, Matrix& b, Matrix& c)> operands;
  const float* bias = nullptr;  // (N), added to every row of c
  Epilogue after = {};
  bool add = false;  // c += a b
};
void gemm(const Products& products);

// For kernels that do not add the bias while they have c in registers: what is left to do with a tile.
Epilogue bias_and_after(const Products& products);

// One product.
void gemm(int64_t M, int64_t N, int64_t K, Matrix a, Matrix b, Matrix c, bool add = false);

}  // namespace heed
