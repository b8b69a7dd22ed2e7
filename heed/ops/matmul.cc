// Batched matrix product. Transposed views go to the kernel as they are.
#include "heed/core/raw.h"
#include "heed/ops/gemm.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

// x with its last two axes in a layout that sgemm reads: one of them dense, rows apart by at least a row.
Tensor readable(const Tensor& x) {
  const int64_t rows = x.size(-2), columns = x.size(-1), down = x.strides()[x.rank() - 2], along = x.strides()[x.rank() - 1];
  const bool plain = (along == 1 || columns == 1) && (down >= columns || rows == 1);
  const bool transposed = (down == 1 || rows == 1) && (along >= rows || columns == 1);
  return plain || transposed ? x.detach() : contiguous(x);
}

Matrix matrix_at(const Tensor& x, int64_t offset) {
  const int64_t rows = x.size(-2), columns = x.size(-1), down = x.strides()[x.rank() - 2], along = x.strides()[x.rank() - 1];
  float* data = raw<float>(x) + offset;
  if ((along == 1 || columns == 1) && (down >= columns || rows == 1)) return {data, std::max(down, columns), false};
  return {data, std::max(along, rows), true};
}

// Where item number `item` of the broadcast leading axes starts in x.
int64_t item_offset(const Tensor& x, const Shape& leading, int64_t item) {
  int64_t offset = 0;
  for (int axis = leading.rank() - 1; axis >= 0; --axis) {
    const int own = axis - (leading.rank() - (x.rank() - 2));
    if (own >= 0 && x.shape()[own] != 1) offset += item % leading[axis] * x.strides()[own];
    item /= leading[axis];
  }
  return offset;
}

Shape leading_axes(const Tensor& x) { return Shape(std::span(x.shape().begin(), static_cast<size_t>(x.rank() - 2))); }

Tensor product(const Tensor& left, const Tensor& right) {
  const Tensor a = readable(left), b = readable(right);
  const Shape leading = broadcast_shape("matmul", leading_axes(a), leading_axes(b));
  const int64_t M = a.size(-2), K = a.size(-1), N = b.size(-1);
  Shape shape = leading;
  shape.push_back(M);
  shape.push_back(N);
  const Tensor out = Tensor::empty(shape, DType::f32, a.device());
  float* to = raw<float>(out);
  gemm({.batch = count(leading), .M = M, .N = N, .K = K, .operands = [&](int64_t item, Matrix& x, Matrix& y, Matrix& z) {
          x = matrix_at(a, item_offset(a, leading, item));
          y = matrix_at(b, item_offset(b, leading, item));
          z = {to + item * M * N, N};
        }});
  return out;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (is_half(a) || is_half(b)) return cast(matmul(widen(a), widen(b)), a.dtype());
  check(a.rank() >= 2 && b.rank() >= 2, "matmul: shapes ", a.shape(), " and ", b.shape(), ", expected at least two axes each");
  check(a.size(-1) == b.size(-2), "matmul: the rows of a have ", a.size(-1), " numbers, the columns of b ", b.size(-2));
  check(a.dtype() == DType::f32 && b.dtype() == DType::f32, "matmul: of ", name_of(a.dtype()), " and ", name_of(b.dtype()),
        ", expected f32");
  // A stack of rows times one matrix is one tall product.
  if (a.rank() > 2 && b.rank() == 2 && a.is_contiguous()) {
    Shape shape = a.shape();
    shape[a.rank() - 1] = b.size(-1);
    return reshape(matmul(reshape(a, {-1, a.size(-1)}), b), shape);
  }
  return record(op::matmul, product(a, b), {a, b}, [a, b](const Tensor& g) {
    return Grads{a.needs_grad() ? sum_to(product(g, transpose(b, -1, -2)), a.shape()) : Tensor(),
                 b.needs_grad() ? sum_to(product(transpose(a, -1, -2), g), b.shape()) : Tensor()};
  });
}

}  // namespace heed
