// Tasks own some of the value columns of one key head: everything but the gradients of the two small maps is theirs alone.
#include "heed/attention/separable.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/separable.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/tile.h"
#include "heed/attention/work.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/core/work_count.h"

#ifndef HEED_ATTENTION_SEPARABLE_TYPES
#define HEED_ATTENTION_SEPARABLE_TYPES
namespace heed {

struct SeparableWork {
  int64_t B = 0, H = 0, G = 0, Y = 0, R = 0, X = 0, C = 0;  // as in separable.h
  int64_t width = 0;                                        // E, padded to whole registers
  const float *rows = nullptr, *columns = nullptr;          // (H, Y, R), (H, X, C)
  const float *v = nullptr, *g = nullptr;                   // (B G, R C, width), (B H, Y X, width)
  float *out = nullptr, *dv = nullptr;                      // (B H, Y X, width), (B G, R C, width)
  float *drows = nullptr, *dcolumns = nullptr;              // (slices, B H, Y, R), (slices, B H, X, C)

  // Value columns of a task: wide enough to be read well, narrow enough for the second cache, and tasks for all threads.
  int64_t slice() const {
    const int64_t wanted = std::max((width + 255) / 256, (16 + B * G - 1) / std::max<int64_t>(B * G, 1));
    return std::max<int64_t>(16, (width / std::max<int64_t>(wanted, 1) + 15) / 16 * 16);
  }
  int64_t slices() const { return (width + slice() - 1) / slice(); }

  // Values are joined by rows, then by columns; the gradient does the first once more.
  int64_t multiply_adds(int64_t E, int64_t row_products, int64_t column_products) const {
    return B * H * E * Y * C * (row_products * R + column_products * X);
  }
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Rows of one operand of a long product: row i of segment s at data + i * row + s * segment.
struct Segments {
  const float* data;
  int64_t row, segment;
};

// c: (rows, columns) = sum over segments and `length` elements of a's row times b's row.
template <int tile>
HWY_INLINE void dot_tile(Segments a, Segments b, int64_t segments, int64_t length, float* c, int64_t c_stride) {
  Lanes sums[tile][tile];
  for (auto& row : sums)
    for (Lanes& x : row) x = 0;
  for (int64_t s = 0; s < segments; ++s)
    for (int64_t e = 0; e < length; e += lane_count()) {
      Lanes right[tile];
      for (int j = 0; j < tile; ++j) right[j] = Lanes::load(b.data + j * b.row + s * b.segment + e);
      for (int i = 0; i < tile; ++i) {
        const Lanes left = Lanes::load(a.data + i * a.row + s * a.segment + e);
        for (int j = 0; j < tile; ++j) sums[i][j] = fma(left, right[j], sums[i][j]);
      }
    }
  for (int i = 0; i < tile; ++i)
    for (int j = 0; j < tile; ++j) c[i * c_stride + j] = sum(sums[i][j]);
}
static HWY_ATTR void dot_rows_of(Segments a, Segments b, int64_t segments, int64_t length, float* c, int64_t rows, int64_t columns) {
  constexpr int64_t tile = 4;
  const auto at = [](Segments x, int64_t i) { return Segments{x.data + i * x.row, x.row, x.segment}; };
  for (int64_t i = 0; i < rows;) {
    const bool high = i + tile <= rows;
    for (int64_t j = 0; j < columns;) {
      if (high && j + tile <= columns) {
        dot_tile<tile>(at(a, i), at(b, j), segments, length, c + i * columns + j, columns);
        j += tile;
      } else {
        for (int64_t r = i; r < (high ? i + tile : i + 1); ++r)
          dot_tile<1>(at(a, r), at(b, j), segments, length, c + r * columns + j, columns);
        ++j;
      }
    }
    i += high ? tile : 1;
  }
}

// What a task looks at: one key head and a slice of its value columns.
struct Slice {
  int64_t b, g, first, columns, index;
};
static Slice slice_of(const SeparableWork& w, int64_t task) {
  const int64_t index = task % w.slices(), head = task / w.slices(), first = index * w.slice();
  return {head / w.G, head % w.G, first, std::min(w.slice(), w.width - first), index};
}

// t: (Y, C, columns) = rows v
static void join_rows(const SeparableWork& w, const Slice& s, int64_t h, float* t) {
  const float* v = w.v + (s.b * w.G + s.g) * w.R * w.C * w.width + s.first;
  for (int64_t c = 0; c < w.C; ++c)
    tile_product({w.rows + h * w.Y * w.R, w.R, 1}, v + c * w.width, w.C * w.width, t + c * s.columns, w.C * s.columns, w.Y, s.columns, w.R,
                 false);
}

void separable_forward(const SeparableWork& w) {
  const bool stream = w.B * w.H * w.Y * w.X * w.width >= kStreamFrom;
  parallel_tasks(w.B * w.G * w.slices(), [&](int64_t task) HWY_ATTR {
    const Slice s = slice_of(w, task);
    const Tensor scratch = Tensor::empty({(w.Y * w.C + w.X) * s.columns});
    float *t = raw<float>(scratch), *row = t + w.Y * w.C * s.columns;  // (Y, C, columns), (X, columns)
    for (int64_t h = s.g * (w.H / w.G); h < (s.g + 1) * (w.H / w.G); ++h) {
      join_rows(w, s, h, t);
      for (int64_t y = 0; y < w.Y; ++y) {
        tile_product({w.columns + h * w.X * w.C, w.C, 1}, t + y * w.C * s.columns, s.columns, row, s.columns, w.X, s.columns, w.C, false);
        float* out = w.out + ((s.b * w.H + h) * w.Y + y) * w.X * w.width + s.first;
        for (int64_t x = 0; x < w.X; ++x) {
          const float* from = row + x * s.columns;
          float* to = out + x * w.width;
          for_lanes(stream, s.columns, [&](int64_t e, auto load, auto store) HEED_LANES { store(to + e, load(from + e)); });
        }
      }
    }
  });
}

void separable_backward(const SeparableWork& w) {
  parallel_tasks(w.B * w.G * w.slices(), [&](int64_t task) HWY_ATTR {
    const Slice s = slice_of(w, task);
    const int64_t size = w.Y * w.C * s.columns, group = w.H / w.G;
    const Tensor scratch = Tensor::empty({2 * size});
    float *t = raw<float>(scratch), *dt = t + size;
    const float* v = w.v + (s.b * w.G + s.g) * w.R * w.C * w.width + s.first;
    float* dv = w.dv + (s.b * w.G + s.g) * w.R * w.C * w.width + s.first;
    for (int64_t h = s.g * group; h < (s.g + 1) * group; ++h) {
      const int64_t head = s.b * w.H + h, place = s.index * w.B * w.H + head;
      const float *g = w.g + head * w.Y * w.X * w.width + s.first, *rows = w.rows + h * w.Y * w.R;
      join_rows(w, s, h, t);
      for (int64_t y = 0; y < w.Y; ++y)
        tile_product({w.columns + h * w.X * w.C, 1, w.C}, g + y * w.X * w.width, w.width, dt + y * w.C * s.columns, s.columns, w.C,
                     s.columns, w.X, false);
      dot_rows_of({g, w.width, w.X * w.width}, {t, s.columns, w.C * s.columns}, w.Y, s.columns, w.dcolumns + place * w.X * w.C, w.X, w.C);
      dot_rows_of({dt, w.C * s.columns, s.columns}, {v, w.C * w.width, w.width}, w.C, s.columns, w.drows + place * w.Y * w.R, w.Y, w.R);
      for (int64_t c = 0; c < w.C; ++c)
        tile_product({rows, 1, w.R}, dt + c * s.columns, w.C * s.columns, dv + c * w.width, w.C * w.width, w.R, s.columns, w.Y,
                     h > s.g * group);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {

HWY_EXPORT(separable_forward);
HWY_EXPORT(separable_backward);

namespace {

Tensor cut_columns(const Tensor& x, int64_t width) { return x.size(-1) == width ? x : contiguous(slice(x, -1, 0, width)); }

// (H, count, keys): softmax over keys of -alpha (place - key - center)^2
Tensor gaussian_map(const Tensor& alpha, const Tensor& center, int64_t count, int64_t keys) {
  std::vector<float> delta;
  for (int64_t place = 0; place < count; ++place)
    for (int64_t key = 0; key < keys; ++key) delta.push_back(static_cast<float>(place - key));
  const int64_t H = alpha.size(0);
  const Tensor away = Tensor::from(delta, {1, count, keys}) - reshape(center, {H, 1, 1});
  return softmax(reshape(alpha, {H, 1, 1}) * away * away * -1.0f);
}

}  // namespace

Tensor separable_attention(const Tensor& row_map, const Tensor& column_map, const Tensor& value) {
  if (is_half(value)) return in_f32(value, [&](const Tensor& wide) { return separable_attention(row_map, column_map, wide); });
  check(row_map.rank() == 3 && column_map.rank() == 3 && value.rank() == 4, "separable_attention: maps ", row_map.shape(), " and ",
        column_map.shape(), ", v ", value.shape(), ", expected (H, Y, R), (H, X, C), (B, G, R C, E)");
  SeparableWork work{.B = value.size(0),
                     .H = row_map.size(0),
                     .G = value.size(1),
                     .Y = row_map.size(1),
                     .R = row_map.size(2),
                     .X = column_map.size(1),
                     .C = column_map.size(2)};
  check(column_map.size(0) == work.H && work.G > 0 && work.H % work.G == 0, "separable_attention: maps of ", work.H, " and ",
        column_map.size(0), " heads, ", work.G, " value heads");
  check(value.size(2) == work.R * work.C, "separable_attention: ", value.size(2), " values on a grid of ", work.R, " x ", work.C);
  const int64_t E = value.size(3);
  work.width = padded_width(E);
  const Tensor rows = dense_f32("separable_attention", row_map), columns = dense_f32("separable_attention", column_map),
               v = padded(dense_f32("separable_attention", value), work.width);
  const Tensor out = Tensor::empty({work.B, work.H, work.Y * work.X, work.width});
  work.rows = raw<float>(rows);
  work.columns = raw<float>(columns);
  work.v = raw<float>(v);
  work.out = raw<float>(out);
  count_work(work.multiply_adds(E, 1, 1));
  HWY_DYNAMIC_DISPATCH(separable_forward)(work);
  return record(op::separable_attention, cut_columns(out, E), {row_map, column_map, value}, [=](const Tensor& gradient) {
    SeparableWork w = work;
    const Tensor g = padded(contiguous(gradient), w.width), dv = Tensor::empty(v.shape()),
                 drows = Tensor::empty({w.slices(), w.B, w.H, w.Y, w.R}), dcolumns = Tensor::empty({w.slices(), w.B, w.H, w.X, w.C});
    w.rows = raw<float>(rows);  // captured, so alive
    w.columns = raw<float>(columns);
    w.v = raw<float>(v);
    w.g = raw<float>(g);
    w.dv = raw<float>(dv);
    w.drows = raw<float>(drows);
    w.dcolumns = raw<float>(dcolumns);
    count_work(w.multiply_adds(E, 3, 2));
    HWY_DYNAMIC_DISPATCH(separable_backward)(w);
    return Grads{sum(drows, {0, 1}), sum(dcolumns, {0, 1}), cut_columns(dv, E)};
  });
}

Tensor gaussian_attention(const Gaussian2d& term, int64_t N, const Tensor& v) {
  const int64_t M = v.size(2), H = term.alpha.size(0);
  check(term.width >= 1 && N % term.width == 0 && M % term.width == 0, "gaussian_attention: ", N, " queries and ", M,
        " keys, expected whole rows of ", term.width);
  const Tensor alpha = widen(term.alpha), center = widen(term.center);
  const auto axis = [&](int64_t which) { return reshape(slice(center, 1, which, which + 1), {H}); };
  return separable_attention(gaussian_map(alpha, axis(0), N / term.width, M / term.width),
                             gaussian_map(alpha, axis(1), term.width, term.width), v);
}

}  // namespace heed
#endif
