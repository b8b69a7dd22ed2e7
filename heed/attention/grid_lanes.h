// Blocks of scores between tokens on a grid: token t is at row t / width, column t % width. Included like lanes.h.
#if defined(HEED_ATTENTION_GRID_LANES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_GRID_LANES_H_
#undef HEED_ATTENTION_GRID_LANES_H_
#else
#define HEED_ATTENTION_GRID_LANES_H_
#endif

#include "heed/attention/term_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// visit(row, first key, offset) for all of a block, row and key counted from its corner. Positions of keys are computed once for
// several rows.
template <class Visit>
HWY_INLINE void for_offsets(const float* center, int64_t width, const ScoreBlock& x, const Visit& visit) {
  constexpr int64_t strip = 16;
  for (int64_t r0 = 0; r0 < x.rows(); r0 += strip)
    for (int64_t j = 0; j < x.keys(); j += lane_count()) {
      const GridPlaces<Lanes> key = grid_places(width, Keys<Lanes>{x.j0 + j});
      for (int64_t r = r0; r < std::min(r0 + strip, x.rows()); ++r) visit(r, j, grid_offset(center, width, x.i0 + r, key));
    }
}

// Terms with a center per head.
template <class T>
HWY_INLINE void grid_block_score(const T& t, const ScoreBlock& x, float* s, int64_t stride) {
  for_offsets(t.center + 2 * x.h, t.width, x, [&](int64_t r, int64_t j, const GridOffset<Lanes>& offset) HEED_LANES {
    float* to = s + r * stride + j;
    score_at(t, x.h, Lanes::load(to), offset).store(to);
  });
}
// sinks: where the lanes of each total are stored
template <class T>
HWY_INLINE void grid_block_gradient(const T& t, float* const* sinks, const ScoreBlock& x, const float* ds, int64_t stride) {
  Lanes sums[T::sums], totals[T::totals];
  for (Lanes& sum : sums) sum = 0;
  for_offsets(t.center + 2 * x.h, t.width, x, [&](int64_t r, int64_t j, const GridOffset<Lanes>& offset) HEED_LANES {
    add_gradient_at(t, sums, Lanes::load(ds + r * stride + j), offset);
  });
  for (int n = 0; n < T::totals; ++n) totals[n] = Lanes::load(sinks[n]);
  finish_gradient(t, x.h, sums, totals);
  for (int n = 0; n < T::totals; ++n) totals[n].store(sinks[n]);
}

// visit(first key, how many, their row of the grid, the first one's column) for every part of a row of the grid in a block,
// keys counted from its corner.
template <class Visit>
HWY_INLINE void for_grid_rows(int64_t width, const ScoreBlock& x, const Visit& visit) {
  for (int64_t j = x.j0; j < x.j1;) {
    const int64_t end = std::min(x.j1, (j / width + 1) * width);
    visit(j - x.j0, end - j, j / width, j % width);
    j = end;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
