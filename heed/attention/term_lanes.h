// The element functions of score terms for Lanes. Included like lanes.h.
#if defined(HEED_ATTENTION_TERM_LANES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_TERM_LANES_H_
#undef HEED_ATTENTION_TERM_LANES_H_
#else
#define HEED_ATTENTION_TERM_LANES_H_
#endif

#include "heed/attention/term_list.h"
#include "heed/attention/tile.h"
#include "heed/core/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

static HWY_INLINE Lanes floor(Lanes x) { return hn::Floor(x.v); }
static HWY_INLINE LaneMask operator&&(LaneMask a, LaneMask b) { return {hn::And(a.m, b.m)}; }
static HWY_INLINE LaneMask operator||(LaneMask a, LaneMask b) { return {hn::Or(a.m, b.m)}; }
static HWY_INLINE LaneMask operator!(LaneMask a) { return {hn::Not(a.m)}; }

template <class V>
struct Keys {
  int64_t first;
};
static HWY_INLINE int64_t lane_count(Keys<Lanes>) { return lane_count(); }
static HWY_INLINE Lanes numbers(Keys<Lanes> j) { return hn::Iota(FloatTag(), static_cast<float>(j.first)); }
template <class Function>
static HWY_INLINE Lanes from_each(Keys<Lanes> j, const Function& function) {
  HWY_ALIGN float values[kLanes];
  for (int64_t lane = 0; lane < lane_count(); ++lane) values[lane] = function(j.first + lane);
  return hn::Load(FloatTag(), values);
}
static HWY_INLINE LaneMask truth(Keys<Lanes>, bool value) { return Lanes(value ? 1.0f : 0.0f) > Lanes(0); }
static HWY_INLINE LaneMask truths(Keys<Lanes>, const bool* from, int64_t count) {  // lanes after the last are false
  uint8_t kept[kLanes] = {};
  std::copy_n(from, std::min(lane_count(), count), kept);
  const auto wide = hn::PromoteTo(IntTag(), hn::LoadU(hn::Rebind<uint8_t, IntTag>(), kept));
  return {hn::RebindMask(FloatTag(), hn::Ne(wide, hn::Zero(IntTag())))};
}

#define HEED_ELEMENT HWY_INLINE
#include "heed/attention/term_elements.h"
#undef HEED_ELEMENT

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
