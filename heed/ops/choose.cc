// Choosing between two tensors by a mask. Operands are read through their broadcast strides: nothing is repeated in memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/choose.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/ops.h"

#ifndef HEED_OPS_CHOOSE_ONCE
#define HEED_OPS_CHOOSE_ONCE
namespace heed {

inline constexpr int kOperands = 3;  // the condition, a, b

// The axes of a broadcast choice after merging, outermost first; the result is dense.
struct ChoiceWalk {
  int rank = 0;
  int64_t size[kMaxRank], stride[kMaxRank][kOperands];
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// y: (count); the others lie `step` elements apart. Steps of 0 and 1 go a register at a time.
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
    const bool steady = std::all_of(step, step + kOperands, [](int64_t s) { return s == 0 || s == 1; });
    for (; steady && i + lanes <= count; i += lanes)
      hn::StoreU(hn::IfThenElse(hn::Ne(flags(), hn::Zero(tag)), load(a, step[1]), load(b, step[2])), tag, y + i);
  }
  for (; i < count; ++i) y[i] = condition[i * step[0]] ? a[i * step[1]] : b[i * step[2]];
}

template <class T>
void choose_typed(const bool* condition, const T* a, const T* b, T* y, const ChoiceWalk& walk) {
  constexpr int64_t block = 1 << 14;
  const int last = walk.rank - 1;
  const int64_t length = walk.size[last], strips = (length + block - 1) / block;
  int64_t rows = 1;
  for (int axis = 0; axis < last; ++axis) rows *= walk.size[axis];
  parallel_for(rows * strips, block / length, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / strips, first = unit % strips * block;
      int64_t offset[kOperands];
      for (int k = 0; k < kOperands; ++k) offset[k] = first * walk.stride[last][k];
      int64_t rest = row;
      for (int axis = last - 1; axis >= 0; --axis) {
        for (int k = 0; k < kOperands; ++k) offset[k] += rest % walk.size[axis] * walk.stride[axis][k];
        rest /= walk.size[axis];
      }
      choose_row(condition + offset[0], a + offset[1], b + offset[2], y + row * length + first, std::min(block, length - first),
                 walk.stride[last]);
    }
  });
}

// Moves bits: only the width of the elements matters.
void choose(size_t width, const bool* condition, const void* a, const void* b, void* y, const ChoiceWalk& walk) {
  const auto typed = [&]<class T>(T) HWY_ATTR {
    choose_typed(condition, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(y), walk);
  };
  switch (width) {
    case 1: return typed(uint8_t());
    case 2: return typed(uint16_t());
    case 4: return typed(uint32_t());
    default: return typed(uint64_t());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(choose);

namespace {

// condition ? a : b at every element of `shape`, to which all of them broadcast.
Tensor chosen(const Tensor& condition, const Tensor& a, const Tensor& b, const Shape& shape) {
  const Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  if (y.count() == 0) return y;
  const Tensor operands[kOperands] = {expand(condition, shape), expand(a.detach(), shape), expand(b.detach(), shape)};
  ChoiceWalk walk;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    bool merges = walk.rank > 0;
    for (int k = 0; merges && k < kOperands; ++k) merges = walk.stride[walk.rank - 1][k] == operands[k].strides()[axis] * shape[axis];
    if (!merges) walk.size[walk.rank++] = 1;
    const int last = walk.rank - 1;
    walk.size[last] *= shape[axis];
    for (int k = 0; k < kOperands; ++k) walk.stride[last][k] = operands[k].strides()[axis];
  }
  if (walk.rank == 0) walk = {1, {1}, {{0, 0, 0}}};
  HWY_DYNAMIC_DISPATCH(choose)
  (bytes_of(a.dtype()), raw<bool>(operands[0]), Raw::bytes(operands[1]), Raw::bytes(operands[2]), Raw::bytes(y), walk);
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
