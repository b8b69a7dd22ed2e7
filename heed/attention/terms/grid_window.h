// Window on a grid of tokens (Ramachandran et al., Stand-Alone Self-Attention, 2019).
#ifndef HEED_ATTENTION_TERMS_GRID_WINDOW_H_
#define HEED_ATTENTION_TERMS_GRID_WINDOW_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct GridWindowArgs {
  static constexpr bool is_mask = true;
  int64_t rows, columns, width;
};
HEED_HOST_DEVICE inline KeyRange reach(const GridWindowArgs& t, const ScoreBlock& x) {
  return {(x.i0 / t.width - t.rows) * t.width, ((x.i1 - 1) / t.width + t.rows + 1) * t.width};
}

#ifndef __CUDACC__
struct GridWindow {  // keep what is at most `rows` rows and `columns` columns away on a grid
  static constexpr const char* name = "GridWindow";
  int64_t rows = 0, columns = 0;
  int64_t width = 1;  // of the grid: token t is at row t / width, column t % width
  void check_sizes(const AttentionSizes&) const {
    check(rows >= 0 && columns >= 0 && width >= 1, "attention: GridWindow{", rows, ", ", columns, ", ", width,
          "}, expected 0 or more on a grid of width 1 or more");
  }
  static TermInfo info() {
    return {.name = "grid_window",
            .summary = "keeps the keys near the query on a grid, by rows and columns",
            .use = TermUse::pattern,
            .masks = true,
            .needs_grid = true,
            .settings = {{"rows", "largest distance in rows", 0},
                         {"columns", "largest distance in columns; by default as in rows", [](auto&, auto& v) { return v.at("rows"); }}}};
  }
  static GridWindow make(const TermInput& in) { return {in.whole("rows"), in.whole("columns"), in.place.columns}; }
  VisibleKeys visible(int64_t i, int64_t N) const {
    const int64_t y = i / width, x = i % width, last = (N - 1) / width;
    VisibleKeys out;
    for (int64_t row = std::max<int64_t>(y - rows, 0); row <= std::min(y + rows, last); ++row)
      out.ranges.emplace_back(row * width + std::max<int64_t>(x - columns, 0), row * width + std::min(x + columns, width - 1) + 1);
    return out;
  }
  GridWindowArgs args() const { return {rows, columns, width}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT auto keep_offset(const GridWindowArgs& t, const GridOffset<V>& offset) {
  return !(abs(offset.rows) > V(static_cast<float>(t.rows)) || abs(offset.columns) > V(static_cast<float>(t.columns)));
}
template <class V>
HEED_ELEMENT auto keep(const GridWindowArgs& t, const ScoreRow& row, Keys<V> j) {
  const float origin[2] = {0, 0};
  return keep_offset(t, grid_offset(origin, t.width, row.i, grid_places(t.width, j)));
}
#endif

#ifdef HEED_TERM_BLOCKS
inline HWY_ATTR void block_score(const GridWindowArgs& t, const ScoreBlock& x, float* s, int64_t stride) {
  const float origin[2] = {0, 0};
  for_offsets(origin, t.width, x, [&](int64_t r, int64_t j, GridOffset<Lanes> offset) HEED_LANES {
    float* to = s + r * stride + j;
    select(keep_offset(t, offset), Lanes::load(to), Lanes(-HUGE_VALF)).store(to);
  });
}
#endif
