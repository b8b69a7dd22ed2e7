// Scores held within bounds by a smooth curve (Gemma 2, 2024). It is_nonlinear scores, so it also is_nonlinear the gradients of all
// that came before it; masks stay masks.
#ifndef HEED_ATTENTION_TERMS_SOFT_CAP_H_
#define HEED_ATTENTION_TERMS_SOFT_CAP_H_

#include "heed/attention/term.h"

namespace heed {

struct SoftCap {  // limit tanh(s / limit)
  static constexpr const char* name = "SoftCap";
  static constexpr bool is_nonlinear = true;
  float limit = 50;
  void check_sizes(const AttentionSizes&) const { check(limit > 0, "attention: SoftCap at ", limit, ", expected more than 0"); }
};

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_SOFT_CAP_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_SOFT_CAP_FORMULAS
#undef HEED_ATTENTION_TERMS_SOFT_CAP_FORMULAS
#else
#define HEED_ATTENTION_TERMS_SOFT_CAP_FORMULAS
#endif
#include "heed/attention/term_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

template <class Load>
HWY_INLINE Lanes score(const SoftCap& t, Lanes s, ScoreRow, int64_t, const Load&) {
  return select(s == Lanes(-HUGE_VALF), s, t.limit * tanh(s * (1 / t.limit)));
}
// Of the score with respect to what it was before, from what it is now.
HWY_INLINE Lanes slope(const SoftCap& t, Lanes s) {
  const Lanes share = s * (1 / t.limit);
  return select(s == Lanes(-HUGE_VALF), Lanes(0), fma(-share, share, Lanes(1)));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
