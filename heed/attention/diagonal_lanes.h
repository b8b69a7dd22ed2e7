// A function of the distance j - i alone is the same along the diagonals of a block. Included like lanes.h.
#if defined(HEED_ATTENTION_DIAGONAL_LANES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_DIAGONAL_LANES_H_
#undef HEED_ATTENTION_DIAGONAL_LANES_H_
#else
#define HEED_ATTENTION_DIAGONAL_LANES_H_
#endif

#include "heed/attention/term_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// The distances in a block: its lower left corner is at the first one, its upper right corner at the last.
HWY_INLINE int64_t first_distance(const ScoreBlock& x) { return x.j0 - x.i1 + 1; }
HWY_INLINE int64_t distance_count(const ScoreBlock& x) { return x.rows() + x.keys() - 1; }

// s += line, where line[n] belongs to the n-th distance of the block.
HWY_INLINE void add_line(const ScoreBlock& x, const float* line, float* s, int64_t stride) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    const float* from = line + x.rows() - 1 - r;
    float* to = s + r * stride;
    for_lanes(x.keys(), [&](int64_t j, auto load, auto store) HEED_LANES { store(to + j, load(to + j) + load(from + j)); });
  }
}

// visit(distance, sums) where lane l holds the sum of ds over all scores at distance + l. Sums are kept in registers; the
// zeros around rows of ds mean that the ends need no special case.
template <class Visit>
HWY_INLINE void for_diagonals(const ScoreBlock& x, const float* ds, int64_t stride, const Visit& visit) {
  const int64_t lanes = lane_count(), rows = x.rows(), keys = x.keys();
  for (int64_t first = 1 - rows; first < keys; first += lanes) {  // column - row within the block
    Lanes sums[2] = {0, 0};
    int64_t r = std::max<int64_t>(0, 1 - first - lanes);
    const int64_t end = std::min(rows, keys - first);
    for (; r + 2 <= end; r += 2)
      for (int64_t half = 0; half < 2; ++half) sums[half] = sums[half] + Lanes::load(ds + (r + half) * stride + first + r + half);
    if (r < end) sums[0] = sums[0] + Lanes::load(ds + r * stride + first + r);
    visit(first + x.j0 - x.i0, sums[0] + sums[1]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
