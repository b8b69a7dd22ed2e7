#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/epilogue.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/formulas.h"

#include "heed/ops/epilogue.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// The activation sees z as it is stored, so that backward can recompute y from it bit for bit.
template <class Formula, class T>
HWY_INLINE void finish_rows(const EpilogueTile& t) {
  const float* sums = t.sums;
  T *z = static_cast<T*>(t.z), *y = static_cast<T*>(t.y);
  for (int64_t row = 0; row < t.rows; ++row, sums += t.sums_stride, y += t.stride) {
    for_lanes(t.columns, [&](int64_t i, auto load, auto store) HEED_LANES {
      Lanes sum = t.bias ? load(sums + i) + load(t.bias + i) : load(sums + i);
      if (z) {
        store(z + i, sum);
        if constexpr (!std::is_same_v<T, float>) sum = load(z + i);
      }
      store(y + i, Formula::f(sum));
    });
    if (z) z += t.stride;
  }
}

void finish_tile(const EpilogueTile& tile) {
  with_formula(tile.activation, [&]<class Formula>(Formula)
                                    HWY_ATTR { with_storage(tile.dtype, [&]<class T>(T) HWY_ATTR { finish_rows<Formula, T>(tile); }); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(finish_tile);

void apply_epilogue(const EpilogueTile& tile) { HWY_DYNAMIC_DISPATCH(finish_tile)(tile); }

}  // namespace heed
#endif
