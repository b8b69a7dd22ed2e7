// Sums and maxima along a row, in a fixed order: four accumulators, combined pairwise. Included like lanes.h.
#if defined(HEED_OPS_ROW_REDUCE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_ROW_REDUCE_H_
#undef HEED_OPS_ROW_REDUCE_H_
#else
#define HEED_OPS_ROW_REDUCE_H_
#endif

#include "heed/core/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// The first `count` lanes of x, the others `filler`.
static HWY_INLINE Lanes first_lanes(Lanes x, int64_t count, Lanes filler) {
  return hn::IfThenElse(hn::FirstN(FloatTag(), static_cast<size_t>(count)), x.v, filler.v);
}

// Combines term(i, load) over [0, count) with join(a, b), starting from `start`, the neutral element of join.
template <class Term, class Join>
static HWY_INLINE Lanes fold(int64_t count, Lanes start, const Term& term, const Join& join) {
  const int64_t step = lane_count();
  const auto whole = [](const auto* p) HEED_LANES { return Lanes::load(p); };
  Lanes a = start, b = start, c = start, d = start;
  int64_t i = 0;
  for (; i + 4 * step <= count; i += 4 * step) {
    a = join(a, term(i, whole));
    b = join(b, term(i + step, whole));
    c = join(c, term(i + 2 * step, whole));
    d = join(d, term(i + 3 * step, whole));
  }
  for (; i + step <= count; i += step) a = join(a, term(i, whole));
  if (i < count) {
    const int64_t rest = count - i;
    b = join(b, first_lanes(term(i, [=](const auto* p) HEED_LANES { return load_some(p, rest); }), rest, start));
  }
  return join(join(a, b), join(c, d));
}

template <class Term>
static HWY_INLINE float sum_over(int64_t count, const Term& term) {
  return sum(fold(count, Lanes(0), term, [](Lanes a, Lanes b) HEED_LANES { return a + b; }));
}

// The same, and each term is stored at `to`.
template <class Term>
static HWY_INLINE float sum_stored(int64_t count, float* to, const Term& term) {
  const int64_t step = lane_count(), whole = count / step * step;
  const float main = sum_over(whole, [&](int64_t i, auto load) HEED_LANES {
    const Lanes x = term(i, load);
    x.store(to + i);
    return x;
  });
  if (whole == count) return main;
  const int64_t rest = count - whole;
  const Lanes last = term(whole, [=](const auto* p) HEED_LANES { return load_some(p, rest); });
  store_some(last, to + whole, rest);
  return main + sum(first_lanes(last, rest, Lanes(0)));
}

template <class Term>
static HWY_INLINE float max_over(int64_t count, const Term& term) {
  return largest(fold(count, Lanes(-HUGE_VALF), term, [](Lanes a, Lanes b) HEED_LANES { return max(a, b); }));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
