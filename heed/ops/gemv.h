// Products that reuse no number of their large matrix, as one token makes them: a row times a matrix, and its gradient's
// outer product. They are bound by memory, so they walk the matrix in the order it lies there, each thread the same part.
#pragma once

#include "heed/ops/gemm.h"

namespace heed {

// c = a b with M = 1. a: (1, K), b: (K, N), c: (1, N)
void gemv(int64_t N, int64_t K, Matrix a, Matrix b, Matrix c, const Epilogue& after);

// c = a b with K = 1. a: (M, 1), b: (1, N), c: (M, N)
void outer_product(int64_t M, int64_t N, Matrix a, Matrix b, Matrix c, const Epilogue& after);

}  // namespace heed
