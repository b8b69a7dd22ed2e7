#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/all_finite.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <atomic>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/all_finite.h"
#include "heed/ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Zero times a number is zero unless the number is NaN or infinite: then it is NaN, and so is every sum with it.
template <class T>
bool has_nonfinite(const T* x, int64_t count) {
  Lanes zeros = 0;
  for_lanes(count, [&](int64_t i, auto load, auto) HEED_LANES { zeros = fma(load(x + i), 0.0f, zeros); });
  return std::isnan(sum(zeros));
}

void find_nonfinite_in(const FindNonfinite& f) {
  std::atomic<int32_t> found = 0;
  with_storage(f.dtype, [&]<class T>(T) {
    parallel_for(f.count, 1 << 16, [&](int64_t begin, int64_t end) HWY_ATTR {
      if (has_nonfinite(static_cast<const T*>(f.x) + begin, end - begin)) found.store(1, std::memory_order_relaxed);
    });
  });
  *f.found = found;
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(find_nonfinite_in);

void cpu::find_nonfinite(const FindNonfinite& args) { HWY_DYNAMIC_DISPATCH(find_nonfinite_in)(args); }

bool all_finite(const Tensor& x) {
  if (!is_floating(x.dtype()) || x.count() == 0) return true;
  const Tensor dense = contiguous(x.dtype() == DType::f16 ? converted(x, DType::f32) : x);
  const Tensor found = Tensor::empty({}, DType::i32, x.device());
  launch(find_nonfinite, x.device(),
         {.x = Raw::bytes(dense), .count = dense.count(), .found = raw<int32_t>(found), .dtype = dense.dtype()});
  return found.item<int32_t>() == 0;
}

}  // namespace heed
#endif
