// The matrix product that all of attention uses: c (+)= a b on small matrices in cache, where rows of b and c are dense and a
// is read element by element with any strides; b is f32 or bf16. Scores, outputs and every gradient are this product with other operands.
// Included like lanes.h.
#if defined(HEED_ATTENTION_TILE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_TILE_H_
#undef HEED_ATTENTION_TILE_H_
#else
#define HEED_ATTENTION_TILE_H_
#endif

#include "heed/ops/register_tile.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Initial values of a product: rows, `down` apart; zeros if data is null.
struct InitialScores {
  const float* data = nullptr;
  int64_t down = 0;
};

template <int rows, int vectors, class B>
HWY_INLINE void register_tile(Broadcast a, const B* b, int64_t b_stride, InitialScores start, float* c, int64_t c_stride, int64_t depth) {
  const int64_t step = lane_count();
  Lanes sums[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sums[r][v] = start.data ? Lanes::load(start.data + r * start.down + v * step) : Lanes(0);
  add_product(sums, a, b, b_stride, depth, [](int64_t) HEED_LANES {});
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sums[r][v].store(c + r * c_stride + v * step);
}

template <int vectors, class B>
HWY_INLINE void register_column(Broadcast a, const B* b, int64_t b_stride, InitialScores start, float* c, int64_t c_stride, int64_t rows,
                                int64_t depth) {
  for (; rows >= kTileRows; rows -= kTileRows, a.data += kTileRows * a.down, c += kTileRows * c_stride) {
    register_tile<kTileRows, vectors>(a, b, b_stride, start, c, c_stride, depth);
    if (start.data) start.data += kTileRows * start.down;
  }
  switch (rows) {
    case 1: return register_tile<1, vectors>(a, b, b_stride, start, c, c_stride, depth);
    case 2: return register_tile<2, vectors>(a, b, b_stride, start, c, c_stride, depth);
    case 3: return register_tile<3, vectors>(a, b, b_stride, start, c, c_stride, depth);
    case 4: return register_tile<4, vectors>(a, b, b_stride, start, c, c_stride, depth);
    case 5: return register_tile<5, vectors>(a, b, b_stride, start, c, c_stride, depth);
    default: return;
  }
}

static HWY_INLINE int64_t whole_registers(int64_t columns) { return (columns + lane_count() - 1) / lane_count() * lane_count(); }

// Contiguous columns of b if it is stored in panels.
static HWY_INLINE int64_t panel_width() { return kTileVectors * lane_count(); }

// c = start + a b. c: (rows, columns), b: (depth, columns), columns a multiple of the lanes.
// panel: offset of the next panel_width() columns of b; 0 if b is not stored in panels.
template <class B>
HWY_NOINLINE void tile_product(Broadcast a, const B* b, int64_t b_stride, InitialScores start, float* c, int64_t c_stride, int64_t rows,
                               int64_t columns, int64_t depth, int64_t panel = 0) {
  const int64_t step = lane_count(), wide = panel_width();
  const auto go_on = [&](int64_t by) {
    c += by;
    if (start.data) start.data += by;
  };
  for (; columns >= wide; columns -= wide, b += panel ? panel : wide, go_on(wide))
    register_column<kTileVectors>(a, b, b_stride, start, c, c_stride, rows, depth);
  for (; columns >= step; columns -= step, b += step, go_on(step)) register_column<1>(a, b, b_stride, start, c, c_stride, rows, depth);
}

// add: adds to c; otherwise c is overwritten.
template <class B>
HWY_INLINE void tile_product(Broadcast a, const B* b, int64_t b_stride, float* c, int64_t c_stride, int64_t rows, int64_t columns,
                             int64_t depth, bool add, int64_t panel = 0) {
  tile_product(a, b, b_stride, {add ? c : nullptr, c_stride}, c, c_stride, rows, columns, depth, panel);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
