// How ops convert their inputs: dense, with a dtype that kernels read. Kernels that store activations read f32 and bf16; f16, and bf16
// where a kernel is f32 only, is converted to f32 and back.
#pragma once

#include "heed/core/copy.h"
#include "heed/core/tensor.h"

namespace heed {

Tensor cast(const Tensor& x, DType dtype);

inline bool is_half(const Tensor& x) { return x.defined() && (x.dtype() == DType::bf16 || x.dtype() == DType::f16); }

inline Tensor widen(const Tensor& x) { return is_half(x) ? cast(x, DType::f32) : x; }

// op(widened x) narrowed to the dtype of x, with gradients through both casts.
template <class Op>
Tensor in_f32(const Tensor& x, const Op& op) {
  return cast(op(widen(x)), x.dtype());
}

// The number of rows of x: (..., columns), even if they are empty.
inline int64_t count_rows(const Tensor& x) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) rows *= x.size(axis);
  return rows;
}

// x detached, f32 and row-major.
inline Tensor dense_f32(const char* op, const Tensor& x) {
  check(x.defined(), op, ": an input is not defined");
  check(x.dtype() == DType::f32, op, ": the input is ", name_of(x.dtype()), ", expected floating numbers");
  return contiguous(x);
}

// x detached, f32 or bf16 and row-major.
inline Tensor dense_storage(const char* op, const Tensor& x) {
  check(x.defined(), op, ": an input is not defined");
  check(x.dtype() == DType::f32 || x.dtype() == DType::bf16, op, ": the input is ", name_of(x.dtype()), ", expected floating numbers");
  return contiguous(x);
}

}  // namespace heed
