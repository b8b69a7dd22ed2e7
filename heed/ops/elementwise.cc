// Expands the list of elementwise.h into kernels and ops.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/elementwise.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/formulas.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

inline constexpr int64_t kGrain = 1 << 13;

template <class Formula, class T>
void apply(const T* x, T* y, int64_t count) {
  const bool streaming = count >= kStreamFrom;
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(streaming, end - begin,
              [&](int64_t i, auto load, auto store) HEED_LANES { store(y + begin + i, Formula::f(load(x + begin + i))); });
  });
}

template <class Formula, class T>
void apply_gradient(const T* x, const T* g, T* dx, int64_t count) {
  const bool streaming = count >= kStreamFrom;
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(streaming, end - begin, [&](int64_t i, auto load, auto store) HEED_LANES {
      store(dx + begin + i, load(g + begin + i) * Formula::df(load(x + begin + i)));
    });
  });
}

// Calls visit with the formula of an op.
template <class Visit>
void with_op(Elementwise op, const Visit& visit) {
  switch (op) {
#define HEED_CASE(Formula, function) \
  case Elementwise::function: return visit(Formula());
    HEED_ELEMENTWISE(HEED_CASE)
#undef HEED_CASE
  }
}

void forward_all(const ElementwiseForward& a) {
  with_op(a.op, [&]<class Formula>(Formula) {
    with_storage(a.dtype, [&]<class T>(T) { apply<Formula>(static_cast<const T*>(a.x), static_cast<T*>(a.y), a.count); });
  });
}

void backward_all(const ElementwiseBackward& a) {
  with_op(a.op, [&]<class Formula>(Formula) {
    with_storage(a.dtype, [&]<class T>(T) {
      apply_gradient<Formula>(static_cast<const T*>(a.x), static_cast<const T*>(a.g), static_cast<T*>(a.dx), a.count);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(forward_all);
HWY_EXPORT(backward_all);

void cpu::elementwise_forward(const ElementwiseForward& args) { HWY_DYNAMIC_DISPATCH(forward_all)(args); }
void cpu::elementwise_backward(const ElementwiseBackward& args) { HWY_DYNAMIC_DISPATCH(backward_all)(args); }

namespace {

Tensor elementwise(OpName name, Elementwise op, const Tensor& input) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return elementwise(name, op, wide); });
  const Tensor x = dense_storage(name.text, input), y = Tensor::empty(x.shape(), x.dtype(), x.device());
  launch(elementwise_forward, x.device(), {.op = op, .x = Raw::bytes(x), .y = Raw::bytes(y), .count = x.count(), .dtype = x.dtype()});
  return record(name, y, {input}, [op, x](const Tensor& gradient) {
    const Tensor g = contiguous(gradient), dx = Tensor::empty(x.shape(), x.dtype(), x.device());
    launch(elementwise_backward, x.device(),
           {.op = op, .x = Raw::bytes(x), .g = Raw::bytes(g), .dx = Raw::bytes(dx), .count = x.count(), .dtype = x.dtype()});
    return Grads{dx};
  });
}

}  // namespace

#define HEED_OP(Formula, function) \
  Tensor function(const Tensor& x) { return elementwise({#function}, Elementwise::function, x); }
HEED_ELEMENTWISE(HEED_OP)
#undef HEED_OP

}  // namespace heed
#endif
