// Score terms on a block of scores and on its gradient: the one place where a term is chosen, once per block. Included
// like lanes.h, after HEED_TERM_FORMULAS is defined.
#if defined(HEED_ATTENTION_APPLY_TERMS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_APPLY_TERMS_H_
#undef HEED_ATTENTION_APPLY_TERMS_H_
#else
#define HEED_ATTENTION_APPLY_TERMS_H_
#endif

#define HEED_TERM_FORMULAS
#include "heed/attention/terms.h"
#undef HEED_TERM_FORMULAS

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// A term without its own way through a block goes row by row.
template <class T>
HWY_INLINE void block_score(const T& t, const ScoreBlock& x, float* s, int64_t stride) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    float* row = s + r * stride;
    const ScoreRow place{x.b, x.h, x.i0 + r, x.first};
    for_lanes(x.keys(),
              [&](int64_t j, auto load, auto store) HEED_LANES { store(row + j, score(t, load(row + j), place, x.j0 + j, load)); });
  }
}
template <class T>
HWY_INLINE void block_gradient(const T&, float* const*, const AttentionSizes&, const ScoreBlock&, const float*, int64_t) {}

static bool skipped(const std::vector<Term>& terms, const ScoreBlock& x) {
  for (const Term& term : terms)
    if (std::visit([&](const auto& t) { return skip(t, x); }, term)) return true;
  return false;
}

// s: rows `stride` apart, each readable and writable to the end of a register behind its last key.
static void apply_terms(const std::vector<Term>& terms, const ScoreBlock& x, float* s, int64_t stride) {
  for (const Term& term : terms)
    std::visit(
        [&](const auto& t) HWY_ATTR {
          if (!idle(t, x)) block_score(t, x, s, stride);
        },
        term);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
