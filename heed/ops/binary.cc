// Arithmetic on two tensors with broadcasting. Axes that both operands walk alike are merged, so that the inner loop is
// long; in it each operand is either dense or one repeated number.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/binary.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/half.h"
#include "heed/ops/ops.h"

#ifndef HEED_OPS_BINARY_WALK
#define HEED_OPS_BINARY_WALK
namespace heed {

enum class Arithmetic { add, subtract, multiply, divide };

// The merged axes of the result, outermost first, and the steps of both operands along them.
struct Pairing {
  int rank = 0;
  int64_t size[kMaxRank], a[kMaxRank], b[kMaxRank];
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

template <class Combine>
HWY_INLINE void combine_row(const float* a, bool repeat_a, const float* b, bool repeat_b, float* out, int64_t count, bool stream,
                            const Combine& combine) {
  if (repeat_a && repeat_b) {
    const Lanes value = combine(Lanes(*a), Lanes(*b));
    for_lanes(stream, count, [&](int64_t i, auto, auto store) HEED_LANES { store(out + i, value); });
  } else if (repeat_a) {
    const Lanes left(*a);
    for_lanes(stream, count, [&](int64_t i, auto load, auto store) HEED_LANES { store(out + i, combine(left, load(b + i))); });
  } else if (repeat_b) {
    const Lanes right(*b);
    for_lanes(stream, count, [&](int64_t i, auto load, auto store) HEED_LANES { store(out + i, combine(load(a + i), right)); });
  } else {
    for_lanes(stream, count, [&](int64_t i, auto load, auto store) HEED_LANES { store(out + i, combine(load(a + i), load(b + i))); });
  }
}

template <class Combine>
HWY_INLINE void combine_all(const float* a, const float* b, float* out, const Pairing& walk, const Combine& combine) {
  constexpr int64_t grain = 1 << 13;
  const int inner = walk.rank - 1;
  const int64_t width = walk.size[inner], pieces = (width + grain - 1) / grain;
  int64_t rows = 1;
  for (int axis = 0; axis < inner; ++axis) rows *= walk.size[axis];
  const bool stream = rows * width >= kStreamFrom && (rows == 1 || width % kLanes == 0);  // rows start aligned
  parallel_for(rows * pieces, std::max<int64_t>(1, grain / width), [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t task = first; task < last; ++task) {
      const int64_t row = task / pieces, begin = task % pieces * grain, end = std::min(width, begin + grain);
      int64_t rest = row, at_a = begin * walk.a[inner], at_b = begin * walk.b[inner];
      for (int axis = inner - 1; axis >= 0; --axis) {
        at_a += rest % walk.size[axis] * walk.a[axis];
        at_b += rest % walk.size[axis] * walk.b[axis];
        rest /= walk.size[axis];
      }
      combine_row(a + at_a, walk.a[inner] == 0, b + at_b, walk.b[inner] == 0, out + row * width + begin, end - begin, stream, combine);
    }
  });
}

void combine(Arithmetic what, const float* a, const float* b, float* out, const Pairing& walk) {
  switch (what) {
    case Arithmetic::add: return combine_all(a, b, out, walk, [](Lanes x, Lanes y) HEED_LANES { return x + y; });
    case Arithmetic::subtract: return combine_all(a, b, out, walk, [](Lanes x, Lanes y) HEED_LANES { return x - y; });
    case Arithmetic::multiply: return combine_all(a, b, out, walk, [](Lanes x, Lanes y) HEED_LANES { return x * y; });
    case Arithmetic::divide: return combine_all(a, b, out, walk, [](Lanes x, Lanes y) HEED_LANES { return x / y; });
  }
}

void scale_shift(const float* x, float factor, float shift, float* out, int64_t count) {
  const bool stream = count >= kStreamFrom;
  parallel_for(count, 1 << 13, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(stream, end - begin,
              [&](int64_t i, auto load, auto store) HEED_LANES { store(out + begin + i, fma(load(x + begin + i), factor, shift)); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(combine);
HWY_EXPORT(scale_shift);

namespace {

// x without history whose last axis is dense, or one number, in the broadcast shape.
Tensor walkable(const char* op, const Tensor& x) {
  check(x.dtype() == DType::f32, op, ": of ", name_of(x.dtype()), ", expected floating numbers");
  const bool inner_dense = x.rank() == 0 || x.size(-1) == 1 || x.strides()[x.rank() - 1] == 1 || x.strides()[x.rank() - 1] == 0;
  return inner_dense ? x.detach() : contiguous(x);
}

Pairing pair_axes(const Shape& shape, const Tensor& a, const Tensor& b) {
  const auto step = [&](const Tensor& x, int axis) {
    const int own = axis - (shape.rank() - x.rank());
    return own < 0 || x.shape()[own] == 1 ? 0 : x.strides()[own];
  };
  Pairing walk;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t size = shape[axis], step_a = step(a, axis), step_b = step(b, axis);
    if (size == 1) continue;
    const int last = walk.rank - 1;
    if (last >= 0 && walk.a[last] == step_a * size && walk.b[last] == step_b * size) {
      walk.size[last] *= size;
      walk.a[last] = step_a;
      walk.b[last] = step_b;
    } else {
      walk.size[walk.rank] = size;
      walk.a[walk.rank] = step_a;
      walk.b[walk.rank++] = step_b;
    }
  }
  if (walk.rank == 0) walk = {1, {1}, {0}, {0}};
  return walk;
}

// The merged inner axis may still step by more than one when the true inner axes have size 1: then copy.
bool inner_is_plain(const Pairing& walk) {
  const int inner = walk.rank - 1;
  return (walk.a[inner] == 0 || walk.a[inner] == 1) && (walk.b[inner] == 0 || walk.b[inner] == 1);
}

Tensor computed(OpName name, Arithmetic what, const Tensor& left, const Tensor& right) {
  Tensor a = walkable(name.text, left), b = walkable(name.text, right);
  const Shape shape = broadcast_shape(name.text, a.shape(), b.shape());
  const Tensor out = Tensor::empty(shape, DType::f32, a.device());
  if (out.count() == 0) return out;
  Pairing walk = pair_axes(shape, a, b);
  if (!inner_is_plain(walk)) {
    a = contiguous(a);
    b = contiguous(b);
    walk = pair_axes(shape, a, b);
  }
  HWY_DYNAMIC_DISPATCH(combine)(what, raw<float>(a), raw<float>(b), raw<float>(out), walk);
  return out;
}

// Records an op of two operands whose gradients are summed over what was broadcast.
template <class Back>
Tensor binary(OpName name, Arithmetic what, const Tensor& a, const Tensor& b, Back back) {
  if (is_half(a) || is_half(b)) {
    const DType narrow = a.dtype();
    return cast(binary(name, what, widen(a), widen(b), back), narrow);
  }
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
  return binary(op::multiply, Arithmetic::multiply, a, b, [a = widen(a), b = widen(b)](const Tensor& g) {
    return Grads{a.needs_grad() ? sum_to(multiply(g, b), a.shape()) : Tensor(),
                 b.needs_grad() ? sum_to(multiply(g, a), b.shape()) : Tensor()};
  });
}

Tensor divide(const Tensor& a, const Tensor& b) {
  return binary(op::divide, Arithmetic::divide, a, b, [a = widen(a), b = widen(b)](const Tensor& g) {
    const Tensor over_b = divide(g, b);
    return Grads{a.needs_grad() ? sum_to(over_b, a.shape()) : Tensor(),
                 b.needs_grad() ? sum_to(scale(multiply(over_b, divide(a, b)), -1), b.shape()) : Tensor()};
  });
}

Tensor scale(const Tensor& input, float factor, float shift) {
  if (is_half(input)) return in_f32(input, [=](const Tensor& wide) { return scale(wide, factor, shift); });
  const Tensor x = dense_f32("scale", input), out = Tensor::empty(x.shape(), DType::f32, x.device());
  HWY_DYNAMIC_DISPATCH(scale_shift)(raw<float>(x), factor, shift, raw<float>(out), x.count());
  return record(op::scale, out, {input}, [factor](const Tensor& g) { return Grads{scale(g, factor)}; });
}

}  // namespace heed
#endif
