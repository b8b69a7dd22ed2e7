// Score terms on a block of scores and on its gradient: the one place where a term is chosen, once per block. Included
// like lanes.h, after HEED_TERM_FORMULAS is defined.
#if defined(HEED_ATTENTION_APPLY_TERMS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_APPLY_TERMS_H_
#undef HEED_ATTENTION_APPLY_TERMS_H_
#else
#define HEED_ATTENTION_APPLY_TERMS_H_
#endif

#include <array>

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
// Most terms need no sizes.
template <class T>
HWY_INLINE void block_score(const T& t, const AttentionSizes&, const ScoreBlock& x, float* s, int64_t stride) {
  block_score(t, x, s, stride);
}
template <class T>
HWY_INLINE void block_gradient(const T&, float* const*, const AttentionSizes&, const ScoreBlock&, const float*, int64_t) {}

// The part of a block that no term masks whole; none of it is left when this is false. What is cut off in front is a
// multiple of kKeyUnit, on which panels and random numbers begin.
inline bool narrow(const std::vector<Term>& terms, ScoreBlock& x) {
  KeyRange kept{x.j0, x.j1};
  for (const Term& term : terms) {
    const auto range = std::visit([&](const auto& t) { return skip(t, x) ? KeyRange{x.j1, x.j0} : reach(t, x); }, term);
    kept = {std::max(kept.first, range.first), std::min(kept.end, range.end)};
    if (kept.first >= kept.end) return false;
  }
  x.j0 += (kept.first - x.j0) / kKeyUnit * kKeyUnit;
  x.j1 = kept.end;
  return true;
}

inline bool masked_whole(const std::vector<Term>& terms, ScoreBlock x) { return !narrow(terms, x); }

template <class T>
inline constexpr bool kBends = requires {
  T::is_nonlinear;
};

// What a term adds to a block, where that lies in rows of `columns` readable numbers: then the product of queries and keys
// begins with it, and the term is done.
inline InitialScores initial_scores_of(const Term& term, const AttentionSizes& sizes, const ScoreBlock& x, int64_t columns) {
  return std::visit([&](const auto& t) { return initial_scores(t, sizes, x, columns); }, term);
}

// The terms from the first-th on. s: rows `stride` apart, each readable and writable to the end of a register behind its last
// key. slopes, where given: a block for every term that is_nonlinear scores.
static void apply_terms(const std::vector<Term>& terms, const AttentionSizes& sizes, const ScoreBlock& x, float* s, int64_t stride,
                        float* slopes = nullptr, size_t first = 0) {
  for (size_t index = first; index < terms.size(); ++index)
    std::visit(
        [&]<class T>(const T& t) HWY_ATTR {
          if (idle(t, x)) return;
          block_score(t, sizes, x, s, stride);
          if constexpr (kBends<T>) {
            for (int64_t r = 0; r < x.rows() && slopes; ++r, slopes += stride)
              for (int64_t j = 0; j < x.keys(); j += lane_count()) slope(t, Lanes::load(s + r * stride + j)).store(slopes + j);
          }
        },
        terms[index]);
}

// The other way, last term first: a term that is_nonlinear scores changes ds, a learned one adds to its sinks.
// sinks_of(index) gives those of a term, null where it has none. slopes: behind the last block.
template <class SinksOf>
void unapply_terms(const std::vector<Term>& terms, const AttentionSizes& sizes, const ScoreBlock& x, float* ds, int64_t stride,
                   const float* slopes, const SinksOf& sinks_of) {
  for (size_t index = terms.size(); index-- > 0;)
    std::visit(
        [&]<class T>(const T& t) HWY_ATTR {
          if constexpr (kBends<T>) {
            slopes -= x.rows() * stride;
            for (int64_t r = 0; r < x.rows(); ++r)
              for (int64_t j = 0; j < x.keys(); j += lane_count()) {
                float* d = ds + r * stride + j;
                (Lanes::load(d) * Lanes::load(slopes + r * stride + j)).store(d);
              }
          } else if (const std::array<float*, 2> sinks = sinks_of(index); sinks[0]) {
            block_gradient(t, sinks.data(), sizes, x, ds, stride);
          }
        },
        terms[index]);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
