#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/gemm.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <hwy/cache_control.h>
#include <oneapi/dnnl/dnnl.h>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/one_row.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Panels of b are as wide as a few registers: with six rows of c they fill the register file.
inline constexpr int kPanelLanes = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// 0: without vectors oneDNN is faster.
int64_t panel_width() { return HWY_TARGET == HWY_SCALAR ? 0 : kPanelLanes * lane_count(); }

// c = a b, R rows of one panel. a: (R, K) with rows `a_stride` apart, b: (K, panel) dense, c: (R, panel)
template <int R>
HWY_INLINE void multiply_panel(const float* a, int64_t a_stride, const float* b, float* c, int64_t c_stride, int64_t K) {
  const int64_t step = lane_count();
  Lanes sums[R][kPanelLanes];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < kPanelLanes; ++v) {
      sums[r][v] = 0.0f;
      hwy::Prefetch(c + r * c_stride + v * step);
    }
  }
  for (int64_t k = 0; k < K; ++k, b += kPanelLanes * step) {
    Lanes right[kPanelLanes];
    for (int v = 0; v < kPanelLanes; ++v) right[v] = Lanes::load(b + v * step);
    for (int r = 0; r < R; ++r) {
      const Lanes left = a[r * a_stride + k];
      for (int v = 0; v < kPanelLanes; ++v) sums[r][v] = fma(left, right[v], sums[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kPanelLanes; ++v) sums[r][v].store(c + r * c_stride + v * step);
}

// Copies columns [column, column + width) of b side by side, a row after the other.
void pack_panel(const Matrix& b, int64_t column, int64_t width, int64_t K, float* to) {
  if (!b.transposed) {
    for (int64_t k = 0; k < K; ++k) std::copy_n(b.data + k * b.stride + column, width, to + k * width);
    return;
  }
  const float* from = b.data + column * b.stride;
  int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> four;  // squares of 4 x 4 change their rows for their columns
  for (int64_t j = 0; j < width; j += 4) {
    for (k = 0; k + 4 <= K; k += 4) {
      const float* corner = from + j * b.stride + k;
      const auto r0 = hn::LoadU(four, corner), r1 = hn::LoadU(four, corner + b.stride);
      const auto r2 = hn::LoadU(four, corner + 2 * b.stride), r3 = hn::LoadU(four, corner + 3 * b.stride);
      const auto even_low = hn::InterleaveLower(four, r0, r2), odd_low = hn::InterleaveLower(four, r1, r3);
      const auto even_high = hn::InterleaveUpper(four, r0, r2), odd_high = hn::InterleaveUpper(four, r1, r3);
      hn::StoreU(hn::InterleaveLower(four, even_low, odd_low), four, to + k * width + j);
      hn::StoreU(hn::InterleaveUpper(four, even_low, odd_low), four, to + (k + 1) * width + j);
      hn::StoreU(hn::InterleaveLower(four, even_high, odd_high), four, to + (k + 2) * width + j);
      hn::StoreU(hn::InterleaveUpper(four, even_high, odd_high), four, to + (k + 3) * width + j);
    }
  }
#endif
  for (; k < K; ++k)
    for (int64_t j = 0; j < width; ++j) to[k * width + j] = from[j * b.stride + k];
}

// c = a b for tall a and few K, each part of c finished while it is in the first cache.
void multiply_panels(int64_t M, int64_t N, int64_t K, Matrix a, Matrix b, Matrix c, const AfterTile& after) {
  const int64_t width = panel_width();
  const Tensor packed = Tensor::empty({N / width, K, width});
  float* panels = raw<float>(packed);
  parallel_for(N / width, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) pack_panel(b, panel * width, width, K, panels + panel * K * width);
  });
  // Panels that stay in the second cache meet all rows before the next ones do.
  constexpr int64_t rows = 48;
  const int64_t down = (M + rows - 1) / rows, across = (N + 383) / 384, columns = (N / width + across - 1) / across * width;
  parallel_tasks(down * across, [&](int64_t task) HWY_ATTR {
    const int64_t begin = task % down * rows, end = std::min(M, begin + rows), first = task / down * columns;
    for (int64_t column = first; column < std::min(N, first + columns); column += width) {
      const float *panel = panels + column * K, *from = a.data + begin * a.stride;
      float* to = c.data + begin * c.stride + column;
      int64_t i = begin;
      for (; i + 6 <= end; i += 6, from += 6 * a.stride, to += 6 * c.stride) multiply_panel<6>(from, a.stride, panel, to, c.stride, K);
      for (; i < end; ++i, from += a.stride, to += c.stride) multiply_panel<1>(from, a.stride, panel, to, c.stride, K);
      if (after) after(0, {begin, end - begin, column, width});
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(panel_width);
HWY_EXPORT(multiply_panels);

namespace {

// How the result of one product is cut. Wide tiles, since each packs its operands for itself; but a product that is worth
// it is cut into at least four, so that there is something to share.
struct Cut {
  int64_t rows, columns;
};

Cut cut_of(int64_t M, int64_t N, int64_t K, bool a_transposed) {
  const auto part = [](int64_t size, int64_t limit) {  // even parts, rounded to what a kernel works on at a time
    const int64_t parts = (size + limit - 1) / limit;
    return std::min(size, ((size + parts - 1) / parts + 15) / 16 * 16);
  };
  int64_t row_limit = 768, column_limit = M >= 1536 ? 768 : N >= 1536 || M < 16 ? 384 : 192;
  if (a_transposed && K >= 2048) row_limit = 96, column_limit = 384;  // weight gradients: sums so long that low tiles are work enough
  const double work = static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  const int64_t wanted = work >= 0x1p22 ? 4 : 1;
  for (;;) {
    const Cut cut{part(M, row_limit), part(N, column_limit)};
    const int64_t tiles = ((M + cut.rows - 1) / cut.rows) * ((N + cut.columns - 1) / cut.columns);
    if (tiles >= wanted || (cut.rows <= 48 && cut.columns <= 48)) return cut;
    (cut.rows >= cut.columns ? row_limit : column_limit) = std::max<int64_t>(48, (cut.rows >= cut.columns ? cut.rows : cut.columns) / 2);
  }
}

}  // namespace

void multiply_matrices(const Products& p) {
  if (p.batch == 0 || p.M == 0 || p.N == 0) return;
  Matrix left{}, right{}, out{};
  p.operands(0, left, right, out);
  if (p.batch == 1 && p.K > 0) {
    const int64_t width = HWY_DYNAMIC_DISPATCH(panel_width)();
    if (p.K == 1) return outer_product(p.M, p.N, left, right, out, p.after);
    if (p.M == 1 && width > 0) return multiply_row(p.N, p.K, left, right, out, p.after);
    // With few K, what happens to c weighs as much as the product: sgemm's tiles would leave the caches before `after`.
    if (width > 0 && p.after && p.M >= 2048 && p.N % width == 0 && p.K <= 384 && !left.transposed)
      return HWY_DYNAMIC_DISPATCH(multiply_panels)(p.M, p.N, p.K, left, right, out, p.after);
  }
  const auto [tile_rows, tile_columns] = cut_of(p.M, p.N, p.K, left.transposed);
  const int64_t across = (p.N + tile_columns - 1) / tile_columns, tiles = (p.M + tile_rows - 1) / tile_rows * across;
  // Small products share a task.
  const int64_t work = p.M * p.N * std::max<int64_t>(p.K, 1), group = tiles > 1 ? 1 : std::max<int64_t>(1, (int64_t{1} << 19) / work);
  parallel_for(p.batch * tiles, group, [&, tile_rows = tile_rows, tile_columns = tile_columns](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t item = task / tiles, row = task % tiles / across * tile_rows, column = task % across * tile_columns;
      const Tile tile{row, std::min(tile_rows, p.M - row), column, std::min(tile_columns, p.N - column)};
      Matrix a{}, b{}, c{};
      p.operands(item, a, b, c);
      float* to = c.data + row * c.stride + column;
      if (p.K > 0) {
        dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', tile.rows, tile.columns, p.K, 1.0f,
                   a.data + (a.transposed ? row : row * a.stride), a.stride, b.data + (b.transposed ? column * b.stride : column), b.stride,
                   0.0f, to, c.stride);
      } else {
        for (int64_t i = 0; i < tile.rows; ++i) std::fill_n(to + i * c.stride, tile.columns, 0.0f);
      }
      if (p.after) p.after(item, tile);
    }
  });
}

void multiply_matrices(int64_t M, int64_t N, int64_t K, Matrix a, Matrix b, Matrix c) {
  multiply_matrices({.M = M, .N = N, .K = K, .operands = [&](int64_t, Matrix& x, Matrix& y, Matrix& z) {
                       x = a;
                       y = b;
                       z = c;
                     }});
}

}  // namespace heed
#endif
