// Masks that are given: any boolean pattern, score by score or in blocks, and windows on a grid.
#ifndef HEED_ATTENTION_TERMS_PATTERN_H_
#define HEED_ATTENTION_TERMS_PATTERN_H_

#include "heed/attention/term.h"

namespace heed {

struct Mask {  // keep where true
  static constexpr const char* name = "Mask";
  Tensor keep;  // bool, broadcasts to (B, H, N, M): (B, 1, 1, M) masks padding
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"keep", keep, {z.B, z.H, z.N, z.M}, Sums::none, DType::boolean, true}};
  }
};

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_PATTERN_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_PATTERN_FORMULAS
#undef HEED_ATTENTION_TERMS_PATTERN_FORMULAS
#else
#define HEED_ATTENTION_TERMS_PATTERN_FORMULAS
#endif
#include "heed/attention/term_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Whether `value` is all that a mask says in a block.
inline bool only(bool value, const Mask& t, const ScoreBlock& x) {
  const int64_t keys = same_for_all_keys(t.keep) ? 1 : x.keys(), first = same_for_all_keys(t.keep) ? 0 : x.j0;
  for (int64_t i = x.i0; i < (t.keep.shape()[2] == 1 ? x.i0 + 1 : x.i1); ++i) {
    const bool* row = broadcast_row<bool>(t.keep, {x.b, x.h, i, x.first}) + first;
    if (std::find(row, row + keys, !value) != row + keys) return false;
  }
  return true;
}
inline bool skip(const Mask& t, const ScoreBlock& x) { return only(false, t, x); }
inline bool idle(const Mask& t, const ScoreBlock& x) { return only(true, t, x); }
template <class Load>
HWY_INLINE Lanes score(const Mask& t, Lanes s, ScoreRow row, int64_t j, const Load&) {
  const bool* from = broadcast_row<bool>(t.keep, row);
  if (same_for_all_keys(t.keep)) return *from ? s : Lanes(-HUGE_VALF);
  const int64_t keys = std::min(lane_count(), t.keep.shape()[3] - j);
  uint8_t kept[kLanes] = {};
  std::copy_n(from + j, keys, kept);
  const auto wide = hn::PromoteTo(IntTag(), hn::LoadU(hn::Rebind<uint8_t, IntTag>(), kept));
  return hn::IfThenElse(hn::RebindMask(FloatTag(), hn::Eq(wide, hn::Zero(IntTag()))), Lanes(-HUGE_VALF).v, s.v);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
