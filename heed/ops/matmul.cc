// Batched matrix product. Transposed views are passed to the kernel without a copy.
#include "heed/core/raw.h"
#include "heed/ops/gemm.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

// x with its last two axes in a layout that gemm reads: one of them dense, the stride of the other at least as long.
Tensor readable(const Tensor& x) {
  const int64_t rows = x.size(-2), columns = x.size(-1), down = x.strides()[x.rank() - 2], along = x.strides()[x.rank() - 1];
  const bool plain = (along == 1 || columns == 1) && (down >= columns || rows == 1);
  const bool transposed = (down == 1 || rows == 1) && (along >= rows || columns == 1);
  return plain || transposed ? x.detach() : contiguous(x);
}

// x: (leading axes that broadcast to `leading`..., rows, columns)
GemmOperand batch_operand(const Tensor& x, const Shape& leading) {
  const int64_t rows = x.size(-2), columns = x.size(-1), down = x.strides()[x.rank() - 2], along = x.strides()[x.rank() - 1];
  const bool plain = (along == 1 || columns == 1) && (down >= columns || rows == 1);
  GemmOperand out{
      .data = Raw::bytes(x), .stride = plain ? std::max(down, columns) : std::max(along, rows), .transposed = !plain, .dtype = x.dtype()};
  for (int axis = 0; axis < leading.rank(); ++axis) {
    const int own = axis - (leading.rank() - (x.rank() - 2));
    out.batch_stride[axis] = own >= 0 && x.shape()[own] != 1 ? x.strides()[own] : 0;
  }
  return out;
}

Shape leading_axes(const Tensor& x) { return Shape(std::span(x.shape().begin(), static_cast<size_t>(x.rank() - 2))); }

Tensor product(const Tensor& left, const Tensor& right) {
  const Tensor a = readable(left), b = readable(right);
  const Shape leading = broadcast_shape("matmul", leading_axes(a), leading_axes(b));
  const int64_t M = a.size(-2), K = a.size(-1), N = b.size(-1);
  Shape shape = leading;
  shape.push_back(M);
  shape.push_back(N);
  const Device device = common_device("matmul", {&left, &right});
  const Tensor out = Tensor::empty(shape, a.dtype(), device);
  Gemm args{.M = M, .N = N, .K = K, .a = batch_operand(a, leading), .b = batch_operand(b, leading), .c = batch_operand(out, leading)};
  args.c.stride = N, args.c.transposed = false;
  args.batch_axes = leading.rank();
  std::copy(leading.begin(), leading.end(), args.batch_size);
  launch(gemm, device, args);
  return out;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::f16) return in_f32(a, [&](const Tensor& wide) { return matmul(wide, b); });
  if (b.dtype() != a.dtype() && is_half(b)) return matmul(a, widen(b));
  if (b.dtype() != a.dtype() && is_half(a)) return matmul(a, cast(b, a.dtype()));
  check(a.rank() >= 2 && b.rank() >= 2, "matmul: shapes ", a.shape(), " and ", b.shape(), ", expected at least two axes each");
  check(a.size(-1) == b.size(-2), "matmul: the rows of a have ", a.size(-1), " numbers, the columns of b ", b.size(-2));
  check(a.dtype() == b.dtype() && (a.dtype() == DType::f32 || a.dtype() == DType::bf16), "matmul: of ", name_of(a.dtype()), " and ",
        name_of(b.dtype()), ", expected floating numbers");
  // A stack of rows times one matrix is one tall product.
  if (a.rank() > 2 && b.rank() == 2 && a.size(-1) > 0 && a.is_contiguous()) {
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
