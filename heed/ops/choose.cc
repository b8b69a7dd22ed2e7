// Choosing between two tensors by a mask. Operands are read through their broadcast strides: nothing is repeated in memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/choose.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/choose.h"
#include "heed/ops/ops.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// y: (count); the others are `step` elements apart. Steps of 0 and 1 go a register at a time.
template <class T>
HWY_INLINE void choose_row(const bool* condition, const T* a, const T* b, T* y, int64_t count, const int64_t* step) {
  int64_t i = 0;
  if constexpr (sizeof(T) <= 4) {
    const hn::ScalableTag<T> tag;
    const hn::Rebind<uint8_t, decltype(tag)> byte_tag;
    const auto load = [&](const T* x, int64_t x_step) HWY_ATTR { return x_step == 1 ? hn::LoadU(tag, x + i) : hn::Set(tag, *x); };
    const auto flags = [&]() HWY_ATTR {
      if (step[0] == 0) return hn::Set(tag, static_cast<T>(*condition));
      const auto bytes = hn::LoadU(byte_tag, reinterpret_cast<const uint8_t*>(condition) + i);
      if constexpr (sizeof(T) == 1) {
        return bytes;
      } else {
        return hn::PromoteTo(tag, bytes);
      }
    };
    const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
    const bool steady = std::all_of(step, step + Choose::kOperands, [](int64_t s) { return s == 0 || s == 1; });
    for (; steady && i + lanes <= count; i += lanes)
      hn::StoreU(hn::IfThenElse(hn::Ne(flags(), hn::Zero(tag)), load(a, step[1]), load(b, step[2])), tag, y + i);
  }
  for (; i < count; ++i) y[i] = condition[i * step[0]] ? a[i * step[1]] : b[i * step[2]];
}

template <class T>
void choose_typed(const Choose& c) {
  constexpr int64_t block = 1 << 14;
  const int last = c.rank - 1;
  const int64_t length = c.size[last], strips = (length + block - 1) / block;
  int64_t rows = 1;
  for (int axis = 0; axis < last; ++axis) rows *= c.size[axis];
  const T *a = static_cast<const T*>(c.a), *b = static_cast<const T*>(c.b);
  parallel_for(rows * strips, block / length, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / strips, first = unit % strips * block;
      int64_t offset[Choose::kOperands];
      for (int k = 0; k < Choose::kOperands; ++k) offset[k] = first * c.stride[last][k];
      int64_t rest = row;
      for (int axis = last - 1; axis >= 0; --axis) {
        for (int k = 0; k < Choose::kOperands; ++k) offset[k] += rest % c.size[axis] * c.stride[axis][k];
        rest /= c.size[axis];
      }
      choose_row(c.condition + offset[0], a + offset[1], b + offset[2], static_cast<T*>(c.y) + row * length + first,
                 std::min(block, length - first), c.stride[last]);
    }
  });
}

void choose_all(const Choose& c) {
  switch (c.element_bytes) {
    case 1: return choose_typed<uint8_t>(c);
    case 2: return choose_typed<uint16_t>(c);
    case 4: return choose_typed<uint32_t>(c);
    default: return choose_typed<uint64_t>(c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(choose_all);

void cpu::choose_forward(const Choose& args) { HWY_DYNAMIC_DISPATCH(choose_all)(args); }

namespace {

// condition ? a : b at every element of `shape`, to which all of them broadcast.
Tensor chosen(const Tensor& condition, const Tensor& a, const Tensor& b, const Shape& shape) {
  const Device device = common_device("where", {&condition, &a, &b});
  const Tensor y = Tensor::empty(shape, a.dtype(), device);
  if (y.count() == 0) return y;
  const Tensor operands[] = {expand(condition, shape), expand(a.detach(), shape), expand(b.detach(), shape)};
  Choose args{.condition = raw<bool>(operands[0]),
              .a = Raw::bytes(operands[1]),
              .b = Raw::bytes(operands[2]),
              .y = Raw::bytes(y),
              .element_bytes = static_cast<int64_t>(bytes_of(a.dtype()))};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    bool merges = args.rank > 0;
    for (int k = 0; merges && k < Choose::kOperands; ++k)
      merges = args.stride[args.rank - 1][k] == operands[k].strides()[axis] * shape[axis];
    if (!merges) args.size[args.rank++] = 1;
    const int last = args.rank - 1;
    args.size[last] *= shape[axis];
    for (int k = 0; k < Choose::kOperands; ++k) args.stride[last][k] = operands[k].strides()[axis];
  }
  if (args.rank == 0) args.rank = 1, args.size[0] = 1;
  launch(choose_forward, device, args);
  return y;
}

Tensor zero_like(const Tensor& x) { return Tensor::zeros({}, x.dtype(), x.device()); }

void check_mask(const char* op, const Tensor& mask) {
  check(mask.defined(), op, ": the mask is not defined");
  check(mask.dtype() == DType::boolean, op, ": the mask is ", name_of(mask.dtype()), ", expected bool");
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check_mask("where", condition);
  check(a.defined() && b.defined(), "where: an input is not defined");
  if (a.dtype() != b.dtype() && is_floating(a.dtype()) && is_floating(b.dtype())) return where(condition, a, cast(b, a.dtype()));
  check(a.dtype() == b.dtype(), "where: one side is ", name_of(a.dtype()), ", the other ", name_of(b.dtype()));
  const Shape shape = broadcast_shape("where", condition.shape(), broadcast_shape("where", a.shape(), b.shape()));
  return record(op::where, chosen(condition, a, b, shape), {a, b},
                [condition, a_shape = a.shape(), b_shape = b.shape(), for_a = a.needs_grad(), for_b = b.needs_grad()](const Tensor& g) {
                  Grads grads(2);
                  if (for_a) grads[0] = sum_to(chosen(condition, g, zero_like(g), g.shape()), a_shape);
                  if (for_b) grads[1] = sum_to(chosen(condition, zero_like(g), g, g.shape()), b_shape);
                  return grads;
                });
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, float value) {
  check_mask("masked_fill", mask);
  check(x.defined(), "masked_fill: the input is not defined");
  const Shape shape = broadcast_shape("masked_fill", x.shape(), mask.shape());
  check(shape == x.shape(), "masked_fill: the mask has shape ", mask.shape(), ", which would enlarge ", x.shape());
  const Tensor filling = Tensor::full({}, value, x.dtype(), x.device());
  return record(op::masked_fill, chosen(mask, filling, x, shape), {x},
                [mask](const Tensor& g) { return Grads{chosen(mask, zero_like(g), g, g.shape())}; });
}

}  // namespace heed
#endif
