// Tokens on a grid: token t lies at row t / width, column t % width. Included like lanes.h.
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

// Places of keys from j on.
struct KeyPlaces {
  Lanes row, column;
};
HWY_INLINE KeyPlaces key_places(int64_t width, int64_t j) {
  const Lanes across = static_cast<float>(width), key = keys_from(j), row = floor((key + 0.5f) / across);
  return {row, fma(-row, across, key)};
}

// visit(row, first key, place of query - place of key - center, by rows and columns) for all of a block, row and key counted
// from its corner. Places of keys are worked out once for several rows.
template <class Visit>
HWY_INLINE void for_offsets(const float* center, int64_t width, const ScoreBlock& x, const Visit& visit) {
  constexpr int64_t strip = 16;
  for (int64_t r0 = 0; r0 < x.rows(); r0 += strip)
    for (int64_t j = 0; j < x.keys(); j += lane_count()) {
      const KeyPlaces key = key_places(width, x.j0 + j);
      for (int64_t r = r0; r < std::min(r0 + strip, x.rows()); ++r) {
        const int64_t i = x.i0 + r;
        visit(r, j, Lanes(static_cast<float>(i / width) - center[0]) - key.row,
              Lanes(static_cast<float>(i % width) - center[1]) - key.column);
      }
    }
}

// visit(first key, how many, their row of the grid, the first one's column) for every piece of a row of the grid in a block,
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
