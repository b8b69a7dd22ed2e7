// Expands the list of elementwise.h into kernels and ops.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/elementwise.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/formulas.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/half.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

inline constexpr int64_t kGrain = 1 << 13;

template <class Formula>
void forward(const float* x, float* y, int64_t count) {
  const bool stream = count >= kStreamFrom;
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(stream, end - begin,
              [&](int64_t i, auto load, auto store) HEED_LANES { store(y + begin + i, Formula::f(load(x + begin + i))); });
  });
}

template <class Formula>
void gradient(const float* x, const float* g, float* dx, int64_t count) {
  const bool stream = count >= kStreamFrom;
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(stream, end - begin, [&](int64_t i, auto load, auto store) HEED_LANES {
      store(dx + begin + i, load(g + begin + i) * Formula::df(load(x + begin + i)));
    });
  });
}

#define HEED_KERNELS(Formula, function)                                                               \
  void function##_forward(const float* x, float* y, int64_t count) { forward<Formula>(x, y, count); } \
  void function##_gradient(const float* x, const float* g, float* dx, int64_t count) { gradient<Formula>(x, g, dx, count); }
HEED_ELEMENTWISE(HEED_KERNELS)
#undef HEED_KERNELS

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

#define HEED_OP(Formula, function)                                                                        \
  HWY_EXPORT(function##_forward);                                                                         \
  HWY_EXPORT(function##_gradient);                                                                        \
  Tensor function(const Tensor& input) {                                                                  \
    if (is_half(input)) return in_f32(input, [](const Tensor& wide) { return function(wide); });          \
    const Tensor x = dense_f32(#function, input);                                                         \
    const Tensor y = Tensor::empty(x.shape(), DType::f32, x.device());                                    \
    HWY_DYNAMIC_DISPATCH(function##_forward)(raw<float>(x), raw<float>(y), x.count());                    \
    return record({#function}, y, {input}, [x](const Tensor& gradient) {                                  \
      const Tensor g = contiguous(gradient), dx = Tensor::empty(x.shape(), DType::f32, x.device());       \
      HWY_DYNAMIC_DISPATCH(function##_gradient)(raw<float>(x), raw<float>(g), raw<float>(dx), x.count()); \
      return Grads{dx};                                                                                   \
    });                                                                                                   \
  }
HEED_ELEMENTWISE(HEED_OP)
#undef HEED_OP

}  // namespace heed
#endif
