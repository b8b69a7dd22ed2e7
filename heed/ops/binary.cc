// Arithmetic on two tensors with broadcasting. Axes that both operands step through alike are merged, so that the inner loop is
// long; in it each operand is either dense or one repeated number.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/binary.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include "heed/core/merge_axes.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/binary.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

template <class T, class Combine>
HWY_INLINE void combine_row(const T* a, bool repeat_a, const T* b, bool repeat_b, T* out, int64_t count, bool streaming,
                            const Combine& combine) {
  if (repeat_a && repeat_b) {
    const Lanes value = combine(repeated(a), repeated(b));
    for_lanes(streaming, count, [&](int64_t i, auto, auto store) HEED_LANES { store(out + i, value); });
  } else if (repeat_a) {
    const Lanes left = repeated(a);
    for_lanes(streaming, count, [&](int64_t i, auto load, auto store) HEED_LANES { store(out + i, combine(left, load(b + i))); });
  } else if (repeat_b) {
    const Lanes right = repeated(b);
    for_lanes(streaming, count, [&](int64_t i, auto load, auto store) HEED_LANES { store(out + i, combine(load(a + i), right)); });
  } else {
    for_lanes(streaming, count, [&](int64_t i, auto load, auto store) HEED_LANES { store(out + i, combine(load(a + i), load(b + i))); });
  }
}

template <class T, class Combine>
void combine_typed(const BinaryForward& f, const Combine& combine) {
  constexpr int64_t grain = 1 << 13;
  const int inner = f.rank - 1;
  const int64_t width = f.size[inner], pieces = (width + grain - 1) / grain;
  int64_t rows = 1;
  for (int axis = 0; axis < inner; ++axis) rows *= f.size[axis];
  const bool streaming = rows * width >= kStreamFrom && (rows == 1 || width % kLanes == 0);  // rows start aligned
  const T *a = static_cast<const T*>(f.a), *b = static_cast<const T*>(f.b);
  T* out = static_cast<T*>(f.out);
  parallel_for(rows * pieces, std::max<int64_t>(1, grain / width), [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t task = first; task < last; ++task) {
      const int64_t row = task / pieces, begin = task % pieces * grain, end = std::min(width, begin + grain);
      int64_t rest = row, at_a = begin * f.a_stride[inner], at_b = begin * f.b_stride[inner];
      for (int axis = inner - 1; axis >= 0; --axis) {
        at_a += rest % f.size[axis] * f.a_stride[axis];
        at_b += rest % f.size[axis] * f.b_stride[axis];
        rest /= f.size[axis];
      }
      combine_row(a + at_a, f.a_stride[inner] == 0, b + at_b, f.b_stride[inner] == 0, out + row * width + begin, end - begin, streaming,
                  combine);
    }
  });
}

template <class T>
void binary_typed(const BinaryForward& f) {
  switch (f.what) {
    case Arithmetic::add: return combine_typed<T>(f, [](Lanes x, Lanes y) HEED_LANES { return x + y; });
    case Arithmetic::subtract: return combine_typed<T>(f, [](Lanes x, Lanes y) HEED_LANES { return x - y; });
    case Arithmetic::multiply: return combine_typed<T>(f, [](Lanes x, Lanes y) HEED_LANES { return x * y; });
    case Arithmetic::divide: return combine_typed<T>(f, [](Lanes x, Lanes y) HEED_LANES { return x / y; });
  }
}

template <class T>
void scale_typed(const ScaleForward& f) {
  const bool streaming = f.count >= kStreamFrom;
  const T* x = static_cast<const T*>(f.x);
  T* out = static_cast<T*>(f.out);
  parallel_for(f.count, 1 << 13, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(streaming, end - begin,
              [&](int64_t i, auto load, auto store) HEED_LANES { store(out + begin + i, fma(load(x + begin + i), f.factor, f.shift)); });
  });
}

void binary_all(const BinaryForward& f) {
  with_storage(f.dtype, [&]<class T>(T) { binary_typed<T>(f); });
}
void scale_all(const ScaleForward& f) {
  with_storage(f.dtype, [&]<class T>(T) { scale_typed<T>(f); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(binary_all);
HWY_EXPORT(scale_all);

void cpu::binary_forward(const BinaryForward& args) { HWY_DYNAMIC_DISPATCH(binary_all)(args); }
void cpu::scale_forward(const ScaleForward& args) { HWY_DYNAMIC_DISPATCH(scale_all)(args); }

namespace {

// x detached, whose last axis is dense, or one number, in the broadcast shape.
Tensor inner_dense(const char* op, const Tensor& x) {
  check(x.dtype() == DType::f32 || x.dtype() == DType::bf16, op, ": of ", name_of(x.dtype()), ", expected floating numbers");
  const bool dense = x.rank() == 0 || x.size(-1) == 1 || x.strides()[x.rank() - 1] == 1 || x.strides()[x.rank() - 1] == 0;
  return dense ? x.detach() : contiguous(x);
}

BinaryForward merge_axes(Arithmetic what, const Tensor& a, const Tensor& b, const Tensor& out) {
  const Shape& shape = out.shape();
  const auto stride = [&](const Tensor& x, int axis) {
    const int own = axis - (shape.rank() - x.rank());
    return own < 0 || x.shape()[own] == 1 ? 0 : x.strides()[own];
  };
  BinaryForward f{.what = what, .a = Raw::bytes(a), .b = Raw::bytes(b), .out = Raw::bytes(out), .dtype = out.dtype()};
  for (int axis = 0; axis < shape.rank(); ++axis)
    append_axis(f.rank, f.size, f.a_stride, f.b_stride, shape[axis], stride(a, axis), stride(b, axis));
  if (f.rank == 0) f.rank = 1, f.size[0] = 1;
  return f;
}

// The merged inner axis may still step by more than one when the true inner axes have size 1: then copy.
bool inner_is_plain(const BinaryForward& f) {
  const int inner = f.rank - 1;
  return (f.a_stride[inner] == 0 || f.a_stride[inner] == 1) && (f.b_stride[inner] == 0 || f.b_stride[inner] == 1);
}

Tensor computed(OpName name, Arithmetic what, const Tensor& left, const Tensor& right) {
  const Device device = common_device(name.text, {&left, &right});
  Tensor a = inner_dense(name.text, left), b = inner_dense(name.text, right);
  const Tensor out = Tensor::empty(broadcast_shape(name.text, a.shape(), b.shape()), a.dtype(), device);
  if (out.count() == 0) return out;
  BinaryForward args = merge_axes(what, a, b, out);
  if (!inner_is_plain(args)) {
    a = contiguous(a);
    b = contiguous(b);
    args = merge_axes(what, a, b, out);
  }
  launch(binary_forward, device, args);
  return out;
}

// Kernels take two operands of one storage type; others are widened.
bool same_storage(const Tensor& a, const Tensor& b) { return a.dtype() == b.dtype() && a.dtype() != DType::f16; }
Tensor as_read(const Tensor& x, const Tensor& other) { return same_storage(x, other) ? x : widen(x); }

// Records an op of two operands whose gradients are summed over broadcast axes. The result has the dtype of a.
template <class Back>
Tensor binary(OpName name, Arithmetic what, const Tensor& a, const Tensor& b, Back back) {
  if (!same_storage(a, b) && (is_half(a) || is_half(b))) return cast(binary(name, what, widen(a), widen(b), back), a.dtype());
  return record(name, computed(name, what, a, b), {a, b}, back);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  return binary(op::add, Arithmetic::add, a, b, [sa = a.shape(), sb = b.shape()](const Tensor& g) {
    return Grads{sum_to(g, sa), sum_to(g, sb)};
  });
}

Tensor subtract(const Tensor& a, const Tensor& b) {
  return binary(op::subtract, Arithmetic::subtract, a, b, [sa = a.shape(), sb = b.shape()](const Tensor& g) {
    return Grads{sum_to(g, sa), sum_to(scale(g, -1), sb)};
  });
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  return binary(op::multiply, Arithmetic::multiply, a, b, [a = as_read(a, b), b = as_read(b, a)](const Tensor& g) {
    return Grads{a.needs_grad() ? sum_to(multiply(g, b), a.shape()) : Tensor(),
                 b.needs_grad() ? sum_to(multiply(g, a), b.shape()) : Tensor()};
  });
}

Tensor divide(const Tensor& a, const Tensor& b) {
  return binary(op::divide, Arithmetic::divide, a, b, [a = as_read(a, b), b = as_read(b, a)](const Tensor& g) {
    const Tensor over_b = divide(g, b);
    return Grads{a.needs_grad() ? sum_to(over_b, a.shape()) : Tensor(),
                 b.needs_grad() ? sum_to(scale(multiply(over_b, divide(a, b)), -1), b.shape()) : Tensor()};
  });
}

Tensor scale(const Tensor& input, float factor, float shift) {
  if (input.dtype() == DType::f16) return in_f32(input, [=](const Tensor& wide) { return scale(wide, factor, shift); });
  const Tensor x = dense_storage("scale", input), out = Tensor::empty(x.shape(), x.dtype(), x.device());
  launch(scale_forward, x.device(),
         {.x = Raw::bytes(x), .out = Raw::bytes(out), .count = x.count(), .factor = factor, .shift = shift, .dtype = x.dtype()});
  return record(op::scale, out, {input}, [factor](const Tensor& g) { return Grads{scale(g, factor)}; });
}

}  // namespace heed
#endif
