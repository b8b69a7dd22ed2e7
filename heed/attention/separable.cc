// Tasks own some of the value columns of one head, or of one key head in backward: everything but the gradients of the two small maps is
// theirs alone.
#include "heed/attention/separable.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/separable.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/float_rows.h"
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

// What a task has: a slice of the value columns of one of `heads` heads. `columns` are whole registers, of which `stored` are in memory.
struct Slice {
  int64_t b, head, first, columns, stored, index;
};
static Slice slice_of(const SeparableSizes& z, int64_t heads, int64_t task) {
  const int64_t index = task % z.slices(heads), head = task / z.slices(heads), first = index * z.slice(heads);
  const int64_t columns = std::min(z.slice(heads), z.width - first);
  return {head / heads, head % heads, first, columns, std::min(columns, z.E - first), index};
}
// The rows from this column on.
static TokenRows from_column(TokenRows x, DType dtype, int64_t first) {
  x.data = static_cast<std::byte*>(x.data) + first * static_cast<int64_t>(bytes_of(dtype));
  return x;
}

// t: (Y, C, columns) = rows v, with tokens v.stride apart
template <class Args>
void join_rows(const Args& w, const Slice& s, FloatRows v, int64_t h, float* t) {
  const SeparableSizes& z = w.sizes;
  for (int64_t c = 0; c < z.C; ++c)
    tile_product({w.rows + h * z.Y * z.R, z.R, 1}, v.data + c * v.stride, z.C * v.stride, t + c * s.columns, z.C * s.columns, z.Y,
                 s.columns, z.R, false);
}

void separable_forward_all(const SeparableForward& w) {
  const SeparableSizes& z = w.sizes;
  const bool stream = z.E == z.width && z.B * z.H * z.Y * z.X * z.width >= kStreamFrom;
  parallel_tasks(z.B * z.H * z.slices(z.H), [&](int64_t task) HWY_ATTR {
    const Slice s = slice_of(z, z.H, task);
    const Tensor scratch = Tensor::empty({(z.Y * z.C + z.X) * s.columns + float_rows_size(w.dtype, z.R * z.C, s.columns)}, kCpu);
    float *t = raw<float>(scratch), *row = t + z.Y * z.C * s.columns, *own_v = row + z.X * s.columns;  // (Y, C, columns), (X, columns)
    const FloatRows v =
        float_rows(from_column(w.v, w.dtype, s.first), w.dtype, s.b, s.head / (z.H / z.G), 0, z.R * z.C, s.stored, s.columns, own_v);
    const TokenRows out = from_column(w.out, w.dtype, s.first);
    const auto store_joined = [&](auto* to) HEED_LANES {
      for (int64_t x = 0; x < z.X; ++x, to += out.token) {
        const float* from = row + x * s.columns;
        for_lanes(stream, s.stored, [&](int64_t e, auto load, auto store) HEED_LANES { store(to + e, load(from + e)); });
      }
    };
    join_rows(w, s, v, s.head, t);
    for (int64_t y = 0; y < z.Y; ++y) {
      tile_product({w.columns + s.head * z.X * z.C, z.C, 1}, t + y * z.C * s.columns, s.columns, row, s.columns, z.X, s.columns, z.C,
                   false);
      w.dtype == DType::bf16 ? store_joined(out.at<Bf16>(s.b, s.head, y * z.X)) : store_joined(out.at<float>(s.b, s.head, y * z.X));
    }
  });
}

void separable_backward_all(const SeparableBackward& w) {
  const SeparableSizes& z = w.sizes;
  const bool in_place = w.dtype == DType::f32 && z.E == z.width;  // dv is added up where it will be
  parallel_tasks(z.B * z.G * z.slices(z.G), [&](int64_t task) HWY_ATTR {
    const Slice s = slice_of(z, z.G, task);
    const int64_t size = z.Y * z.C * s.columns, v_size = z.R * z.C * s.columns, group = z.H / z.G;
    const int64_t wide_v = float_rows_size(w.dtype, z.R * z.C, s.columns), wide_g = float_rows_size(w.dtype, z.Y * z.X, s.columns);
    const Tensor scratch = Tensor::empty({2 * size + wide_v + wide_g + (in_place ? 0 : v_size)}, kCpu);
    float *t = raw<float>(scratch), *dt = t + size, *own_v = dt + size, *own_g = own_v + wide_v, *own_dv = own_g + wide_g;
    const FloatRows v = float_rows(from_column(w.v, w.dtype, s.first), w.dtype, s.b, s.head, 0, z.R * z.C, s.stored, s.columns, own_v);
    const TokenRows g_rows = from_column(w.g, w.dtype, s.first), dv_rows = from_column(w.dv, w.dtype, s.first);
    float* const dv = in_place ? dv_rows.at<float>(s.b, s.head, 0) : own_dv;
    const int64_t dv_stride = in_place ? dv_rows.token : s.columns;
    for (int64_t h = s.head * group; h < (s.head + 1) * group; ++h) {
      const int64_t place = (s.index * z.B + s.b) * z.H + h;
      const FloatRows g = float_rows(g_rows, w.dtype, s.b, h, 0, z.Y * z.X, s.stored, s.columns, own_g);
      join_rows(w, s, v, h, t);
      for (int64_t y = 0; y < z.Y; ++y)
        tile_product({w.columns + h * z.X * z.C, 1, z.C}, g.data + y * z.X * g.stride, g.stride, dt + y * z.C * s.columns, s.columns, z.C,
                     s.columns, z.X, false);
      dot_rows_of({g.data, g.stride, z.X * g.stride}, {t, s.columns, z.C * s.columns}, z.Y, s.columns, w.dcolumns + place * z.X * z.C, z.X,
                  z.C);
      dot_rows_of({dt, z.C * s.columns, s.columns}, {v.data, z.C * v.stride, v.stride}, z.C, s.columns, w.drows + place * z.Y * z.R, z.Y,
                  z.R);
      for (int64_t c = 0; c < z.C; ++c)
        tile_product({w.rows + h * z.Y * z.R, 1, z.R}, dt + c * s.columns, z.C * s.columns, dv + c * dv_stride, z.C * dv_stride, z.R,
                     s.columns, z.Y, h > s.head * group);
    }
    for (int64_t token = 0; token < z.R * z.C && !in_place; ++token)
      store_row(dv_rows, w.dtype, s.b, s.head, token, dv + token * s.columns, s.stored);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "heed/attention/gaussian_maps.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {

HWY_EXPORT(separable_forward_all);
HWY_EXPORT(separable_backward_all);

void cpu::separable_forward(const SeparableForward& args) { HWY_DYNAMIC_DISPATCH(separable_forward_all)(args); }
void cpu::separable_backward(const SeparableBackward& args) { HWY_DYNAMIC_DISPATCH(separable_backward_all)(args); }

Tensor separable_attention(const Tensor& row_map, const Tensor& column_map, const Tensor& value) {
  if (value.dtype() == DType::f16) return in_f32(value, [&](const Tensor& wide) { return separable_attention(row_map, column_map, wide); });
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
  const DType dtype = value.dtype();
  const Tensor rows = dense_f32("separable_attention", row_map), columns = dense_f32("separable_attention", column_map),
               v = padded(readable(value), z.width);
  const auto apply = [=] {
    // Heads inside tokens, as the layer that joins them reads them.
    const Tensor out = transpose(Tensor::empty({z.B, z.Y * z.X, z.H, E}, dtype, device), 1, 2);
    launch(
        separable_forward, device,
        {.sizes = z, .rows = raw<float>(rows), .columns = raw<float>(columns), .v = token_rows(v), .out = token_rows(out), .dtype = dtype});
    return out;
  };
  Tensor joined = record(op::separable_attention, apply(), {row_map, column_map, value}, [=](const Tensor& gradient) {
    const Tensor g = padded(readable(gradient), z.width), dv = strided_like(v, E);
    SeparableBackward args{.sizes = z,
                           .rows = raw<float>(rows),
                           .columns = raw<float>(columns),
                           .v = token_rows(v),
                           .g = token_rows(g),
                           .dv = token_rows(dv),
                           .dtype = dtype};
    const int64_t parts = args.parts(cuda::computing_device(device));
    const Tensor drows = Tensor::empty({parts, z.H, z.Y, z.R}, DType::f32, device),
                 dcolumns = Tensor::empty({parts, z.H, z.X, z.C}, DType::f32, device);
    args.drows = raw<float>(drows);
    args.dcolumns = raw<float>(dcolumns);
    launch(separable_backward, device, args);
    return Grads{sum(drows, {0}), sum(dcolumns, {0}), dv};
  });
  return with_recompute(std::move(joined), apply);  // as large as the values of all heads, and cheap
}

Tensor gaussian_attention(const Gaussian2d& term, int64_t N, const Tensor& v) {
  const int64_t M = v.size(2), H = term.alpha.size(0);
  check(term.width >= 1 && N % term.width == 0 && M % term.width == 0, "gaussian_attention: ", N, " queries and ", M,
        " keys, expected whole rows of ", term.width);
  const Tensor alpha = widen(term.alpha), center = widen(term.center);
  const auto [rows, columns] =
      gaussian_maps(alpha, center, {.H = H, .Y = N / term.width, .R = M / term.width, .X = term.width, .C = term.width});
  return separable_attention(rows, columns, v);
}

}  // namespace heed
#endif
