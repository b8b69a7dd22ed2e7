// Score terms on a block of scores and on its gradient: the only place that dispatches on the kind of a term, once per block. Included like
// lanes.h.
#if defined(HEED_ATTENTION_APPLY_TERMS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_APPLY_TERMS_H_
#undef HEED_ATTENTION_APPLY_TERMS_H_
#else
#define HEED_ATTENTION_APPLY_TERMS_H_
#endif

#include <algorithm>
#include <vector>

#include "heed/attention/attention_kernels.h"
#include "heed/attention/diagonal_lanes.h"
#include "heed/attention/grid_lanes.h"
#include "heed/attention/term_lanes.h"
#include "heed/attention/tile.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// initial_scores: the rows of numbers that a term adds to a block, if they are stored in memory.
template <class T>
InitialScores initial_scores(const T&, const AttentionSizes&, const ScoreBlock&, int64_t) {
  return {};
}

#define HEED_TERM_BLOCKS
#include "heed/attention/term_files.h"
#undef HEED_TERM_BLOCKS

// A term without its own function of a block goes row by row.
template <class T>
HWY_INLINE void block_score(const T& t, const ScoreBlock& x, float* s, int64_t stride) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    float* row = s + r * stride;
    const ScoreRow place{x.b, x.h, x.i0 + r, x.first};
    for_lanes(x.keys(), [&](int64_t j, auto load, auto store)
                            HEED_LANES { store(row + j, score(t, load(row + j), place, Keys<Lanes>{x.j0 + j}, load)); });
  }
}
template <class T>
HWY_INLINE void block_gradient(const T&, float* const*, const AttentionSizes&, const ScoreBlock&, const float*, int64_t) {}

// Shrinks a block to the keys that no term masks completely; false if none are left. The number of keys removed at the front is a multiple
// of kKeyUnit, where panels and random numbers start.
inline bool narrow(const TermSequence& terms, ScoreBlock& x) {
  KeyRange kept{x.j0, x.j1};
  for (const TermArgs& term : terms) {
    const auto range = visit_term(term, [&](const auto& t) { return skip(t, x) ? KeyRange{x.j1, x.j0} : reach(t, x); });
    kept = {std::max(kept.first, range.first), std::min(kept.end, range.end)};
    if (kept.first >= kept.end) return false;
  }
  x.j0 += (kept.first - x.j0) / kKeyUnit * kKeyUnit;
  x.j1 = kept.end;
  return true;
}

inline bool masked_whole(const TermSequence& terms, ScoreBlock x) { return !narrow(terms, x); }

// The numbers that a term adds to a block, where they are stored in rows of `columns` readable numbers: then the product of queries and
// keys starts from them, and the term needs no pass of its own.
inline InitialScores initial_scores_of(const TermArgs& term, const AttentionSizes& sizes, const ScoreBlock& x, int64_t columns) {
  return visit_term(term, [&](const auto& t) { return initial_scores(t, sizes, x, columns); });
}

// The terms from the first-th on. s: rows `stride` apart, each readable and writable up to a whole register after its
// last key. slopes, if given: a block for every nonlinear term.
static void apply_terms(const TermSequence& terms, const ScoreBlock& x, float* s, int64_t stride, float* slopes = nullptr, int first = 0) {
  for (int index = first; index < terms.count; ++index)
    visit_term(terms[index], [&]<class T>(const T& t) HWY_ATTR {
      if (idle(t, x)) return;
      block_score(t, x, s, stride);
      if constexpr (kIsNonlinear<T>) {
        for (int64_t r = 0; r < x.rows() && slopes; ++r, slopes += stride)
          for (int64_t j = 0; j < x.keys(); j += lane_count()) slope(t, Lanes::load(s + r * stride + j)).store(slopes + j);
      }
    });
}

// In reverse order: a nonlinear term changes ds, a learned one adds to its sinks. slopes: after the last block.
// sinks_of(index, sinks) sets those of a term, two pointers, null where it has none.
template <class SinksOf>
void unapply_terms(const TermSequence& terms, const AttentionSizes& sizes, const ScoreBlock& x, float* ds, int64_t stride,
                   const float* slopes, const SinksOf& sinks_of) {
  for (int index = terms.count; index-- > 0;)
    visit_term(terms[index], [&]<class T>(const T& t) HWY_ATTR {
      if constexpr (kIsNonlinear<T>) {
        slopes -= x.rows() * stride;
        for (int64_t r = 0; r < x.rows(); ++r)
          for (int64_t j = 0; j < x.keys(); j += lane_count()) {
            float* d = ds + r * stride + j;
            (Lanes::load(d) * Lanes::load(slopes + r * stride + j)).store(d);
          }
      } else {
        float* sinks[2] = {};
        sinks_of(index, sinks);
        if (sinks[0]) block_gradient(t, sinks, sizes, x, ds, stride);
      }
    });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
