// Tasks own some of the value columns of one key head: everything but the gradients of the two small maps is theirs alone.
#include "heed/attention/separable.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/separable.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/separable_kernels.h"
#include "heed/attention/tile.h"
#include "heed/attention/work.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"

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

// What a task reads: one key head and a slice of its value columns.
struct Slice {
  int64_t b, g, first, columns, index;
};
static Slice slice_of(const SeparableSizes& z, int64_t task) {
  const int64_t index = task % z.slices(), head = task / z.slices(), first = index * z.slice();
  return {head / z.G, head % z.G, first, std::min(z.slice(), z.width - first), index};
}

// t: (Y, C, columns) = rows v
template <class Args>
void join_rows(const Args& w, const Slice& s, int64_t h, float* t) {
  const SeparableSizes& z = w.sizes;
  const float* v = w.v + (s.b * z.G + s.g) * z.R * z.C * z.width + s.first;
  for (int64_t c = 0; c < z.C; ++c)
    tile_product({w.rows + h * z.Y * z.R, z.R, 1}, v + c * z.width, z.C * z.width, t + c * s.columns, z.C * s.columns, z.Y, s.columns, z.R,
                 false);
}

void separable_forward_all(const SeparableForward& w) {
  const SeparableSizes& z = w.sizes;
  const bool stream = z.B * z.H * z.Y * z.X * z.width >= kStreamFrom;
  parallel_tasks(z.B * z.G * z.slices(), [&](int64_t task) HWY_ATTR {
    const Slice s = slice_of(z, task);
    const Tensor scratch = Tensor::empty({(z.Y * z.C + z.X) * s.columns}, kCpu);
    float *t = raw<float>(scratch), *row = t + z.Y * z.C * s.columns;  // (Y, C, columns), (X, columns)
    for (int64_t h = s.g * (z.H / z.G); h < (s.g + 1) * (z.H / z.G); ++h) {
      join_rows(w, s, h, t);
      for (int64_t y = 0; y < z.Y; ++y) {
        tile_product({w.columns + h * z.X * z.C, z.C, 1}, t + y * z.C * s.columns, s.columns, row, s.columns, z.X, s.columns, z.C, false);
        float* out = w.out + ((s.b * z.H + h) * z.Y + y) * z.X * z.width + s.first;
        for (int64_t x = 0; x < z.X; ++x) {
          const float* from = row + x * s.columns;
          float* to = out + x * z.width;
          for_lanes(stream, s.columns, [&](int64_t e, auto load, auto store) HEED_LANES { store(to + e, load(from + e)); });
        }
      }
    }
  });
}

void separable_backward_all(const SeparableBackward& w) {
  const SeparableSizes& z = w.sizes;
  parallel_tasks(z.B * z.G * z.slices(), [&](int64_t task) HWY_ATTR {
    const Slice s = slice_of(z, task);
    const int64_t size = z.Y * z.C * s.columns, group = z.H / z.G;
    const Tensor scratch = Tensor::empty({2 * size}, kCpu);
    float *t = raw<float>(scratch), *dt = t + size;
    const float* v = w.v + (s.b * z.G + s.g) * z.R * z.C * z.width + s.first;
    float* dv = w.dv + (s.b * z.G + s.g) * z.R * z.C * z.width + s.first;
    for (int64_t h = s.g * group; h < (s.g + 1) * group; ++h) {
      const int64_t head = s.b * z.H + h, place = s.index * z.B * z.H + head;
      const float *g = w.g + head * z.Y * z.X * z.width + s.first, *rows = w.rows + h * z.Y * z.R;
      join_rows(w, s, h, t);
      for (int64_t y = 0; y < z.Y; ++y)
        tile_product({w.columns + h * z.X * z.C, 1, z.C}, g + y * z.X * z.width, z.width, dt + y * z.C * s.columns, s.columns, z.C,
                     s.columns, z.X, false);
      dot_rows_of({g, z.width, z.X * z.width}, {t, s.columns, z.C * s.columns}, z.Y, s.columns, w.dcolumns + place * z.X * z.C, z.X, z.C);
      dot_rows_of({dt, z.C * s.columns, s.columns}, {v, z.C * z.width, z.width}, z.C, s.columns, w.drows + place * z.Y * z.R, z.Y, z.R);
      for (int64_t c = 0; c < z.C; ++c)
        tile_product({rows, 1, z.R}, dt + c * s.columns, z.C * s.columns, dv + c * z.width, z.C * z.width, z.R, s.columns, z.Y,
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

HWY_EXPORT(separable_forward_all);
HWY_EXPORT(separable_backward_all);

void cpu::separable_forward(const SeparableForward& args) { HWY_DYNAMIC_DISPATCH(separable_forward_all)(args); }
void cpu::separable_backward(const SeparableBackward& args) { HWY_DYNAMIC_DISPATCH(separable_backward_all)(args); }

namespace {

Tensor cut_columns(const Tensor& x, int64_t width) { return x.size(-1) == width ? x : contiguous(slice(x, -1, 0, width)); }

// (H, count, keys): softmax over keys of -alpha (place - key - center)^2
Tensor gaussian_map(const Tensor& alpha, const Tensor& center, int64_t count, int64_t keys) {
  std::vector<float> delta;
  for (int64_t place = 0; place < count; ++place)
    for (int64_t key = 0; key < keys; ++key) delta.push_back(static_cast<float>(place - key));
  const int64_t H = alpha.size(0);
  const Tensor away = Tensor::from(delta, {1, count, keys}, kCpu).to(alpha.device()) - reshape(center, {H, 1, 1});
  return softmax(reshape(alpha, {H, 1, 1}) * away * away * -1.0f);
}

}  // namespace

Tensor separable_attention(const Tensor& row_map, const Tensor& column_map, const Tensor& value) {
  if (is_half(value)) return in_f32(value, [&](const Tensor& wide) { return separable_attention(row_map, column_map, wide); });
  check(row_map.rank() == 3 && column_map.rank() == 3 && value.rank() == 4, "separable_attention: maps ", row_map.shape(), " and ",
        column_map.shape(), ", v ", value.shape(), ", expected (H, Y, R), (H, X, C), (B, G, R C, E)");
  const Device device = common_device("separable_attention", {&row_map, &column_map, &value});
  const int64_t E = value.size(3);
  const SeparableSizes z{.B = value.size(0),
                         .H = row_map.size(0),
                         .G = value.size(1),
                         .Y = row_map.size(1),
                         .R = row_map.size(2),
                         .X = column_map.size(1),
                         .C = column_map.size(2),
                         .E = E,
                         .width = padded_width(E, device)};
  check(column_map.size(0) == z.H && z.G > 0 && z.H % z.G == 0, "separable_attention: maps of ", z.H, " and ", column_map.size(0),
        " heads, ", z.G, " value heads");
  check(value.size(2) == z.R * z.C, "separable_attention: ", value.size(2), " values on a grid of ", z.R, " x ", z.C);
  const Tensor rows = dense_f32("separable_attention", row_map), columns = dense_f32("separable_attention", column_map),
               v = padded(dense_f32("separable_attention", value), z.width);
  const Tensor out = Tensor::empty({z.B, z.H, z.Y * z.X, z.width}, DType::f32, device);
  launch(separable_forward, device,
         {.sizes = z, .rows = raw<float>(rows), .columns = raw<float>(columns), .v = raw<float>(v), .out = raw<float>(out)});
  return record(op::separable_attention, cut_columns(out, E), {row_map, column_map, value}, [=](const Tensor& gradient) {
    const Tensor g = padded(contiguous(gradient), z.width), dv = Tensor::empty(v.shape(), DType::f32, device),
                 drows = Tensor::empty({z.slices(), z.B, z.H, z.Y, z.R}, DType::f32, device),
                 dcolumns = Tensor::empty({z.slices(), z.B, z.H, z.X, z.C}, DType::f32, device);
    launch(separable_backward, device,
           {.sizes = z,
            .rows = raw<float>(rows),
            .columns = raw<float>(columns),
            .v = raw<float>(v),
            .g = raw<float>(g),
            .dv = raw<float>(dv),
            .drows = raw<float>(drows),
            .dcolumns = raw<float>(dcolumns)});
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
