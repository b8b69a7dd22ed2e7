// What the formulas of terms are written with, and what a term does that has no formula of its own. Included like lanes.h.
#if defined(HEED_ATTENTION_TERM_LANES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_TERM_LANES_H_
#undef HEED_ATTENTION_TERM_LANES_H_
#else
#define HEED_ATTENTION_TERM_LANES_H_
#endif

#include "heed/attention/term.h"
#include "heed/attention/tile.h"
#include "heed/core/lanes.h"
#include "heed/core/raw.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// The row of a score: item, head and the query's position; first as in ScoreBlock.
struct ScoreRow {
  int64_t b, h, i, first = 0;
};

static HWY_INLINE Lanes keys_from(int64_t j) { return Lanes(hn::Iota(FloatTag(), static_cast<float>(j))); }
static HWY_INLINE Lanes floor(Lanes x) { return hn::Floor(x.v); }
static HWY_INLINE LaneMask operator&&(LaneMask a, LaneMask b) { return {hn::And(a.m, b.m)}; }
static HWY_INLINE LaneMask operator||(LaneMask a, LaneMask b) { return {hn::Or(a.m, b.m)}; }
static HWY_INLINE LaneMask operator!(LaneMask a) { return {hn::Not(a.m)}; }

// reach: outside [first, end) the term masks all keys of a block. skip: it masks the block whole. idle: it changes nothing in it.
struct KeyRange {
  int64_t first, end;
};
template <class T>
KeyRange reach(const T&, const ScoreBlock& x) {
  return {x.j0, x.j1};
}
template <class T>
bool skip(const T&, const ScoreBlock&) {
  return false;
}
template <class T>
bool idle(const T&, const ScoreBlock&) {
  return false;
}

// initial_scores: the rows of numbers that a term adds to a block, if they lie somewhere.
template <class T>
InitialScores initial_scores(const T&, const AttentionSizes&, const ScoreBlock&, int64_t) {
  return {};
}

// A mask keeps or drops: keep(term, row, keys).
template <class T, class Load>
HWY_INLINE Lanes score(const T& term, Lanes s, ScoreRow row, int64_t j, const Load&) {
  return select(keep(term, row, keys_from(j)), s, -HUGE_VALF);
}

// The row of a tensor that broadcasts to (B, H, N, M), and whether it is one element for all keys.
template <class E>
HWY_INLINE const E* broadcast_row(const Tensor& x, ScoreRow row) {
  const auto step = [&](int axis) { return x.shape()[axis] == 1 ? 0 : x.strides()[axis]; };
  return raw<E>(x) + row.b * step(0) + row.h * step(1) + (row.i - row.first) * step(2);
}
HWY_INLINE bool same_for_all_keys(const Tensor& x) { return x.shape()[3] == 1; }

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
