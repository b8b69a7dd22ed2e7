#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/packed_gemm.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/transpose_lanes.h"
#include "heed/ops/register_tile.h"

#include <hwy/cache_control.h>

#include <bit>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/packed_gemm.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// A panel is as wide as a register tile.
inline constexpr int kPanelRows = kTileRows, kPanelLanes = kTileVectors;

inline constexpr int64_t kLineFloats = 16, kRowLines = std::max<int64_t>(1, kPanelLanes*kLanes / kLineFloats);  // lines of the cache

int64_t width_of_panel() { return HWY_TARGET == HWY_SCALAR ? 0 : kPanelLanes * lane_count(); }

// c = a b or c += a b, then + bias: R rows of one panel. a: (R, K) with rows `a_stride` apart, b: (K, panel) dense,
// c: (R, panel), bias: (panel) or null
template <int R>
HWY_INLINE void multiply_panel(const float* a, int64_t a_stride, const float* b, const float* bias, float* c, int64_t c_stride, int64_t K,
                               bool more) {
  const int64_t step = lane_count();
  Lanes sums[R][kPanelLanes];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kPanelLanes; ++v) sums[r][v] = more ? Lanes::load(c + r * c_stride + v * step) : Lanes(0.0f);
  // c is prefetched bit by bit, a row in 2^row_steps steps, a cache line in a quarter of them: all at once would delay the loads of b.
  // If there is time, the next rows of c follow.
  const int row_steps = K >= 4 * R ? std::bit_width(static_cast<uint64_t>(K / R)) - 1 : 2;
  add_product(sums, {a, a_stride, 1}, b, kPanelLanes * step, K, [&](int64_t k) HEED_LANES {
    hwy::Prefetch(c + (k >> row_steps) * c_stride + (k >> (row_steps - 2)) % kRowLines * kLineFloats);
  });
  for (int v = 0; v < kPanelLanes && bias; ++v)
    for (int r = 0; r < R; ++r) sums[r][v] = sums[r][v] + Lanes::load(bias + v * step);
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kPanelLanes; ++v) sums[r][v].store(c + r * c_stride + v * step);
}

void multiply_few_rows(int64_t rows, const float* a, int64_t a_stride, const float* b, const float* bias, float* c, int64_t c_stride,
                       int64_t K, bool more) {
  switch (rows) {
    case 1: return multiply_panel<1>(a, a_stride, b, bias, c, c_stride, K, more);
    case 2: return multiply_panel<2>(a, a_stride, b, bias, c, c_stride, K, more);
    case 3: return multiply_panel<3>(a, a_stride, b, bias, c, c_stride, K, more);
    case 4: return multiply_panel<4>(a, a_stride, b, bias, c, c_stride, K, more);
    case 5: return multiply_panel<5>(a, a_stride, b, bias, c, c_stride, K, more);
    default: return multiply_panel<kPanelRows>(a, a_stride, b, bias, c, c_stride, K, more);
  }
}

// Copies columns [column, column + columns) of b, row after row, padded with zeros.
void pack_panel(const Matrix& b, int64_t column, int64_t columns, int64_t K, float* to) {
  const int64_t width = width_of_panel();
  if (b.transposed) {
    transpose_rows(b.data + column * b.stride, b.stride, columns, K, 1, to, width);
  } else {
    for (int64_t k = 0; k < K; ++k) std::copy_n(b.data + k * b.stride + column, columns, to + k * width);
  }
  for (int64_t k = 0; k < K && columns < width; ++k) std::fill_n(to + k * width + columns, width - columns, 0.0f);
}

// Rows [begin, end) of one panel of c. A panel is split along K into pieces that stay in the second-level cache for all rows.
void panel_task(const Matrix& a, const float* panel, const float* bias, const Matrix& c, int64_t K, int64_t begin, int64_t end,
                int64_t column, int64_t columns, const Epilogue& after) {
  const int64_t width = width_of_panel(), pieces = std::max<int64_t>(1, (K + 1023) / 1024), depth = (K + pieces - 1) / pieces;
  const bool whole = columns == width;
  HWY_ALIGN float edge[kPanelRows * kPanelLanes * kLanes], edge_bias[kPanelLanes * kLanes] = {};
  if (bias && !whole) {
    std::copy_n(bias, columns, edge_bias);
    bias = edge_bias;
  }
  for (int64_t first = 0; first == 0 || first < K; first += depth) {
    const int64_t last = std::min(K, first + depth);
    for (int64_t row = begin; row < end; row += kPanelRows) {
      const int64_t rows = std::min<int64_t>(kPanelRows, end - row);
      float *to = c.data + row * c.stride + column, *at = whole ? to : edge;
      const int64_t stride = whole ? c.stride : width;
      if (!whole && first > 0)
        for (int64_t r = 0; r < rows; ++r) std::copy_n(to + r * c.stride, columns, edge + r * width);
      multiply_few_rows(rows, a.data + row * a.stride + first, a.stride, panel + first * width, last == K ? bias : nullptr, at, stride,
                        last - first, first > 0);
      if (!whole)
        for (int64_t r = 0; r < rows; ++r) std::copy_n(edge + r * width, columns, to + r * c.stride);
      if (after && last == K) after(0, {row, rows, column, columns});
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(width_of_panel);
HWY_EXPORT(pack_panel);
HWY_EXPORT(panel_task);

int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(width_of_panel)(); }

int64_t panel_floats(int64_t N, int64_t K) {
  const int64_t width = panel_width();
  return (N + width - 1) / width * width * K;
}

void pack_panels(const Matrix& b, int64_t N, int64_t K, float* panels) {
  const int64_t width = panel_width();
  parallel_for((N + width - 1) / width, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t column = panel * width, columns = std::min(width, N - column);
      HWY_DYNAMIC_DISPATCH(pack_panel)(b, column, columns, K, panels + column * K);
    }
  });
}

void packed_gemm(int64_t M, int64_t N, int64_t K, const Matrix& a, const float* panels, const float* bias, const Matrix& c,
                 const Epilogue& after) {
  // Even parts of rows that, with a panel, stay in the second-level cache; all panels are applied to one part before the next. If the
  // panels together do not fit there, taller parts load them less often.
  const int64_t limit = N * K > (1 << 20) ? std::clamp<int64_t>((1 << 17) / std::max<int64_t>(K, 1), 96, 768) : 96;
  const int64_t width = panel_width(), across = (N + width - 1) / width, parts = (M + limit - 1) / limit;
  const int64_t rows = ((M + parts - 1) / parts + 5) / 6 * 6;
  parallel_tasks(parts * across, [&](int64_t task) {
    const int64_t begin = task / across * rows, column = task % across * width;
    HWY_DYNAMIC_DISPATCH(panel_task)
    (a, panels + column * K, bias ? bias + column : nullptr, c, K, begin, std::min(M, begin + rows), column, std::min(width, N - column),
     after);
  });
}

}  // namespace heed
#endif
