// Matrix products by NVIDIA's cuBLASLt, which is loaded when the first product runs. Looked for, in this order: the file that the
// environment variable HEED_CUBLASLT names ("none": do not use the library), libcublasLt.so.13 and .so.12 where the loader looks, next to
// the program and in lib/ there, in /usr/local/cuda/lib64, and in the packages of the python3 on PATH, which PyTorch brings.
#pragma once

#include <cstdint>
#include <string>

#include "heed/core/dtype.h"

namespace heed::cuda {

// A row-major matrix: element (row, column) is data[row * stride + column], or data[column * stride + row] if transposed. The matrices of a
// batch are `step` elements apart; 0: the same for all.
struct LtMatrix {
  void* data;
  int64_t stride;
  bool transposed = false;
  int64_t step = 0;
};

// c = a b + bias, or c += a b. a and b have one type, f32 or bf16; sums are f32.
struct LtProduct {
  int64_t M, N, K, batch = 1;
  LtMatrix a, b, c;  // (M, K), (K, N), (M, N); c is not transposed
  DType type, c_type;
  const void* bias = nullptr;  // (N)
  DType bias_type = DType::f32;
  bool add = false;
};

// False, without any effect, if there is no library or it does not support the product.
bool lt_multiply(const LtProduct& product);

std::string lt_library();  // the file in use; empty if there is none

}  // namespace heed::cuda
