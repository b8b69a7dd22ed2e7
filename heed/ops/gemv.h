// Products that use each element of their large matrix once: a row times a matrix, as in decoding, and the outer product of its gradient.
// They are bound by memory bandwidth, so they read the matrix in storage order, each thread always the same part.
#pragma once

#include "heed/ops/gemm_cpu.h"

namespace heed {

// c = a b with M = 1. a: (1, K), b: (K, N), c: (1, N)
void gemv(int64_t N, int64_t K, Matrix a, Matrix b, Matrix c, const Epilogue& after);

// c = a b with K = 1. a: (M, 1), b: (1, N), c: (M, N)
void outer_product(int64_t M, int64_t N, Matrix a, Matrix b, Matrix c, const Epilogue& after);

}  // namespace heed
