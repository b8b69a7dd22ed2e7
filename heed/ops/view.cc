// Views and casts. A view shares the data; its gradient is the reverse view.
#include "heed/core/copy.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

// Strides of a view of x with this shape, if there is one without a copy.
std::optional<Shape> strides_for(const Tensor& x, const Shape& shape) {
  Shape strides = dense_strides(shape);
  if (x.is_contiguous()) return strides;
  // Match runs of old axes that are dense in memory with runs of new axes of the same size.
  int old_end = x.rank(), new_end = shape.rank();
  while (old_end > 0 || new_end > 0) {
    int64_t old_size = 1, new_size = 1;
    int old_begin = old_end, new_begin = new_end;
    do {
      if (old_size <= new_size && old_begin > 0) {
        old_size *= x.shape()[--old_begin];
      } else if (new_begin > 0) {
        new_size *= shape[--new_begin];
      } else {
        break;
      }
    } while (old_size != new_size || old_size == 1);
    if (old_size != new_size) return std::nullopt;
    std::optional<int64_t> step;  // 0 is a stride like any other: that of an axis that expand() repeats
    for (int axis = old_end - 1; axis >= old_begin; --axis) {
      if (x.shape()[axis] == 1) continue;
      if (step && x.strides()[axis] != *step) return std::nullopt;
      step = x.strides()[axis] * x.shape()[axis];
    }
    int64_t stride = 1;
    for (int axis = old_end - 1; axis >= old_begin; --axis)
      if (x.shape()[axis] != 1) {
        stride = x.strides()[axis];
        break;
      }
    for (int axis = new_end - 1; axis >= new_begin; --axis) {
      strides[axis] = stride;
      stride *= shape[axis];
    }
    old_end = old_begin;
    new_end = new_begin;
  }
  return strides;
}

Shape resolve(const Tensor& x, Shape shape) {
  int64_t known = 1;
  int open = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == -1) {
      check(open < 0, "reshape: two sizes are -1 in ", shape);
      open = axis;
    } else {
      known = checked_multiply(known, shape[axis]);
    }
  }
  if (open >= 0) {
    check(known > 0 && x.count() % known == 0, "reshape: ", x.shape(), " does not divide into ", shape);
    shape[open] = x.count() / known;
  }
  check(count(shape) == x.count(), "reshape: ", x.shape(), " has ", x.count(), " elements, ", shape, " has ", count(shape));
  return shape;
}

}  // namespace

Tensor reshape(const Tensor& x, Shape wish) {
  const Shape shape = resolve(x, wish), before = x.shape();
  const std::optional<Shape> strides = strides_for(x, shape);
  const Tensor out = strides ? x.view(shape, *strides) : contiguous(x).view(shape, dense_strides(shape));
  return record(op::reshape, out, {x}, [before](const Tensor& g) { return Grads{reshape(g, before)}; });
}

Tensor permute(const Tensor& x, std::initializer_list<int> axes) { return permute(x, std::span(axes.begin(), axes.size())); }

Tensor permute(const Tensor& x, std::span<const int> axes) {
  check(static_cast<int>(axes.size()) == x.rank(), "permute: ", axes.size(), " axes given for a tensor with ", x.rank());
  Shape shape = x.shape(), strides = x.strides();
  std::vector<int> back(axes.size(), -1);
  for (int to = 0; to < x.rank(); ++to) {
    const int from = normal_axis("permute", axes[static_cast<size_t>(to)], x.rank());
    check(back[static_cast<size_t>(from)] < 0, "permute: axis ", from, " is given twice");
    shape[to] = x.shape()[from];
    strides[to] = x.strides()[from];
    back[static_cast<size_t>(from)] = to;
  }
  return record(op::permute, x.view(shape, strides), {x}, [back](const Tensor& g) { return Grads{permute(g, back)}; });
}

Tensor transpose(const Tensor& x, int a, int b) {
  std::vector<int> axes(static_cast<size_t>(x.rank()));
  for (int axis = 0; axis < x.rank(); ++axis) axes[static_cast<size_t>(axis)] = axis;
  std::swap(axes[static_cast<size_t>(normal_axis("transpose", a, x.rank()))],
            axes[static_cast<size_t>(normal_axis("transpose", b, x.rank()))]);
  return permute(x, axes);
}

Tensor slice(const Tensor& x, int wish, int64_t begin, int64_t end, int64_t step) {
  const int axis = normal_axis("slice", wish, x.rank());
  const int64_t size = x.shape()[axis];
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  check(step >= 1, "slice: the step is ", step, ", expected 1 or more");
  check(0 <= begin && begin <= end && end <= size, "slice: [", begin, ", ", end, ") of an axis of size ", size);
  Shape shape = x.shape(), strides = x.strides();
  shape[axis] = (end - begin + step - 1) / step;
  strides[axis] *= step;
  const Tensor out = x.view(shape, strides, begin * x.strides()[axis]);
  return record(op::slice, out, {x}, [before = x.shape(), axis, begin, step](const Tensor& g) {
    const Tensor whole = Tensor::zeros(before, g.dtype(), g.device());
    Shape window_strides = whole.strides();
    window_strides[axis] *= step;
    copy_into(g, whole.view(g.shape(), window_strides, begin * whole.strides()[axis]));
    return Grads{whole};
  });
}

Tensor expand(const Tensor& x, const Shape& shape) {
  check(shape.rank() >= x.rank(), "expand: ", x.shape(), " to fewer axes ", shape);
  Shape strides = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int from = axis - (shape.rank() - x.rank());
    const int64_t size = from < 0 ? 1 : x.shape()[from];
    check(size == shape[axis] || size == 1, "expand: ", x.shape(), " to ", shape);
    strides[axis] = size == shape[axis] && from >= 0 ? x.strides()[from] : 0;
  }
  return record(op::expand, x.view(shape, strides), {x}, [before = x.shape()](const Tensor& g) { return Grads{sum_to(g, before)}; });
}

Tensor cast(const Tensor& x, DType dtype) {
  const Tensor out = converted(x, dtype);
  if (!is_floating(dtype)) return out;
  return record(op::cast, out, {x}, [before = x.dtype()](const Tensor& g) { return Grads{converted(g, before)}; });
}

}  // namespace heed
