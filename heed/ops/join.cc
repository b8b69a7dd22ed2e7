// Concatenating, splitting and stacking tensors. Gradients are views if possible.
#include "heed/core/copy.h"
#include "heed/ops/ops.h"
#include "heed/ops/windows.h"

namespace heed {
namespace {

// [begin, begin + size) of one axis of x, detached.
Tensor window(const Tensor& x, int axis, int64_t begin, int64_t size) {
  Shape shape = x.shape();
  shape[axis] = size;
  return x.view(shape, x.strides(), begin * x.strides()[axis]);
}

void check_parts(const char* op, const Tensors& parts) {
  check(!parts.empty(), op, ": found 0 tensors, expected at least 1");
  for (size_t k = 0; k < parts.size(); ++k) {
    check(parts[k].defined(), op, ": tensor ", k, " is not defined");
    check(parts[k].dtype() == parts[0].dtype(), op, ": tensor ", k, " is ", name_of(parts[k].dtype()), ", the first ",
          name_of(parts[0].dtype()));
    common_device(op, {&parts[0], &parts[k]});
  }
}

}  // namespace

Tensor concat(const Tensors& parts, int along) {
  check_parts("concat", parts);
  const int axis = normal_axis("concat", along, parts[0].rank());
  Shape shape = parts[0].shape();
  shape[axis] = 0;
  std::vector<int64_t> sizes;
  for (size_t k = 0; k < parts.size(); ++k) {
    Shape expected = parts[0].shape();
    if (parts[k].rank() == shape.rank()) expected[axis] = parts[k].shape()[axis];
    check(parts[k].shape() == expected, "concat: tensor ", k, " has shape ", parts[k].shape(), ", the first ", parts[0].shape(),
          "; only axis ", axis, " may differ");
    sizes.push_back(expected[axis]);
    shape[axis] += expected[axis];
  }
  const Tensor out = Tensor::empty(shape, parts[0].dtype(), parts[0].device());
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    copy_into(part, window(out, axis, begin, part.shape()[axis]));
    begin += part.shape()[axis];
  }
  return record(op::concat, out, parts, [sizes, axis](const Tensor& g) {
    Grads grads;
    int64_t place = 0;
    for (int64_t size : sizes) {
      grads.push_back(window(g, axis, place, size));
      place += size;
    }
    return grads;
  });
}

Tensors split(const Tensor& x, std::span<const int64_t> given, int along) {
  check(x.defined(), "split: the input is not defined");
  const int axis = normal_axis("split", along, x.rank());
  const std::vector<int64_t> sizes(given.begin(), given.end());
  Tensors outs;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    const int64_t left = x.shape()[axis] - begin;
    check(size >= 0 && size <= left, "split: a piece of ", size, ", expected 0 to ", left, " (what is left of axis ", axis, ")");
    outs.push_back(window(x, axis, begin, size));
    begin += size;
  }
  check(begin == x.shape()[axis], "split: the pieces make ", begin, ", axis ", axis, " has ", x.shape()[axis]);
  return record_all(op::split, outs, {x}, [sizes, axis, before = x.shape(), dtype = x.dtype(), device = x.device()](const Grads& gs) {
    if (const Tensor there = joined_windows(gs, axis); there.defined()) return Grads{there};
    const Tensor whole = Tensor::empty(before, dtype, device);
    int64_t place = 0;
    for (size_t k = 0; k < sizes.size(); ++k) {
      const Tensor piece = window(whole, axis, place, sizes[k]);
      copy_into(gs[k].defined() ? gs[k] : expand(Tensor::zeros({}, dtype, device), piece.shape()), piece);
      place += sizes[k];
    }
    return Grads{whole};
  });
}

Tensor stack(const Tensors& parts, int along) {
  check_parts("stack", parts);
  const Shape& each = parts[0].shape();
  const int axis = normal_axis("stack", along, each.rank() + 1);
  Shape shape;
  for (int a = 0; a <= each.rank(); ++a) {
    if (a == axis) shape.push_back(static_cast<int64_t>(parts.size()));
    if (a < each.rank()) shape.push_back(each[a]);
  }
  // Layer k of a stacked tensor: the new axis is gone.
  const auto layer = [axis, each](const Tensor& x, int64_t k) {
    Shape strides;
    for (int a = 0; a < x.rank(); ++a)
      if (a != axis) strides.push_back(x.strides()[a]);
    return x.view(each, strides, k * x.strides()[axis]);
  };
  const Tensor out = Tensor::empty(shape, parts[0].dtype(), parts[0].device());
  for (size_t k = 0; k < parts.size(); ++k) {
    check(parts[k].shape() == each, "stack: tensor ", k, " has shape ", parts[k].shape(), ", the first ", each);
    copy_into(parts[k], layer(out, static_cast<int64_t>(k)));
  }
  return record(op::stack, out, parts, [layer, layers = parts.size()](const Tensor& g) {
    Grads grads;
    for (size_t k = 0; k < layers; ++k) grads.push_back(layer(g, static_cast<int64_t>(k)));
    return grads;
  });
}

}  // namespace heed
