// Constant padding. The gradient is the window that x filled.
#include "heed/core/copy.h"
#include "heed/ops/ops.h"

namespace heed {

Tensor pad(const Tensor& x, std::span<const std::array<int64_t, 2>> before_after, float value) {
  check(x.defined(), "pad: the input is not defined");
  check(static_cast<int>(before_after.size()) == x.rank(), "pad: found ", before_after.size(), " pairs, expected ", x.rank(),
        ": one for each axis");
  Shape shape = x.shape(), begin = x.shape();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto [before, after] = before_after[static_cast<size_t>(axis)];
    check(before >= 0 && after >= 0, "pad: found (", before, ", ", after, ") for axis ", axis, ", expected 0 or more");
    begin[axis] = before;
    shape[axis] += before + after;
  }
  const auto inside = [begin, size = x.shape()](const Tensor& padded) {
    int64_t offset = 0;
    for (int axis = 0; axis < size.rank(); ++axis) offset += begin[axis] * padded.strides()[axis];
    return padded.view(size, padded.strides(), offset);
  };
  const Tensor out = Tensor::full(shape, value, x.dtype(), x.device());
  copy_into(x, inside(out));
  return record(op::pad, out, {x}, [inside](const Tensor& g) { return Grads{inside(g)}; });
}

}  // namespace heed
