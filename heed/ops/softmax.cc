// Softmax and its logarithm over one axis. A row is read while it is in the nearest cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/softmax.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/rows.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/half.h"
#include "heed/ops/ops.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

inline constexpr int kShortRow = 16;  // registers: 256 numbers with AVX-512, enough for the maps of a vision transformer

// One row that fits into `vectors` registers: read once, written once.
template <int vectors>
HWY_INLINE void softmax_short_row(const float* x, float* y, int64_t width) {
  const int64_t step = lane_count(), rest = width - (vectors - 1) * step;
  Lanes row[vectors];
  for (int v = 0; v + 1 < vectors; ++v) row[v] = Lanes::load(x + v * step);
  row[vectors - 1] = first_lanes(load_some(x + (vectors - 1) * step, rest), rest, -HUGE_VALF);
  Lanes top = row[0], total = 0;
  for (int v = 1; v < vectors; ++v) top = max(top, row[v]);
  top = largest(top);
  for (int v = 0; v < vectors; ++v) {
    row[v] = exp_below(row[v] - top);
    total = total + row[v];
  }
  const Lanes scale = 1 / Lanes(sum(total));
  for (int v = 0; v + 1 < vectors; ++v) (row[v] * scale).store(y + v * step);
  store_some(row[vectors - 1] * scale, y + (vectors - 1) * step, rest);
}

template <int vectors = 1>
void softmax_short(const float* x, float* y, int64_t rows, int64_t width) {
  if constexpr (vectors < kShortRow) {
    if (width > vectors * lane_count()) return softmax_short<vectors + 1>(x, y, rows, width);
  }
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) softmax_short_row<vectors>(x + row * width, y + row * width, width);
  });
}

// y = exp(x - max) / sum. x, y: (rows, width)
void softmax_forward(const float* x, float* y, int64_t rows, int64_t width) {
  if (width <= kShortRow * lane_count()) return softmax_short(x, y, rows, width);
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const float* from = x + row * width;
      float* to = y + row * width;
      const Lanes top = max_over(width, [&](int64_t i, auto load) HEED_LANES { return load(from + i); });
      const Lanes scale = 1 / sum_stored(width, to, [&](int64_t i, auto load) HEED_LANES { return exp_below(load(from + i) - top); });
      for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES { store(to + i, load(to + i) * scale); });
    }
  });
}

// dx = y (g - sum(g y))
void softmax_gradient(const float* y, const float* g, float* dx, int64_t rows, int64_t width) {
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin * width; at < end * width; at += width) {
      const Lanes shared = sum_over(width, [&](int64_t i, auto load) HEED_LANES { return load(g + at + i) * load(y + at + i); });
      for_lanes(width,
                [&](int64_t i, auto load, auto store) HEED_LANES { store(dx + at + i, load(y + at + i) * (load(g + at + i) - shared)); });
    }
  });
}

// y = x - max - log(sum(exp(x - max)))
void log_softmax_forward(const float* x, float* y, int64_t rows, int64_t width) {
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin * width; at < end * width; at += width) {
      const Lanes top = max_over(width, [&](int64_t i, auto load) HEED_LANES { return load(x + at + i); });
      const float total = sum_over(width, [&](int64_t i, auto load) HEED_LANES { return exp_below(load(x + at + i) - top); });
      const Lanes shift = std::log(total);
      for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES { store(y + at + i, load(x + at + i) - top - shift); });
    }
  });
}

// dx = g - exp(y) sum(g)
void log_softmax_gradient(const float* y, const float* g, float* dx, int64_t rows, int64_t width) {
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin * width; at < end * width; at += width) {
      const Lanes total = sum_over(width, [&](int64_t i, auto load) HEED_LANES { return load(g + at + i); });
      for_lanes(width, [&](int64_t i, auto load, auto store)
                           HEED_LANES { store(dx + at + i, load(g + at + i) - exp_below(load(y + at + i)) * total); });
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(softmax_forward);
HWY_EXPORT(softmax_gradient);
HWY_EXPORT(log_softmax_forward);
HWY_EXPORT(log_softmax_gradient);

Tensor softmax(const Tensor& input, int axis) {
  if (is_half(input)) return in_f32(input, [=](const Tensor& wide) { return softmax(wide, axis); });
  if (const int last = input.rank() - 1; normal_axis("softmax", axis, input.rank()) != last)
    return transpose(softmax(transpose(input, axis, last)), axis, last);
  const Tensor x = dense_f32("softmax", input), y = Tensor::empty(x.shape(), DType::f32, x.device());
  const int64_t width = x.size(-1), rows = x.count() / std::max<int64_t>(width, 1);
  HWY_DYNAMIC_DISPATCH(softmax_forward)(raw<float>(x), raw<float>(y), rows, width);
  return record(op::softmax, y, {input}, [y, rows, width](const Tensor& gradient) {
    const Tensor g = contiguous(gradient), dx = Tensor::empty(y.shape(), DType::f32, y.device());
    HWY_DYNAMIC_DISPATCH(softmax_gradient)(raw<float>(y), raw<float>(g), raw<float>(dx), rows, width);
    return Grads{dx};
  });
}

Tensor log_softmax(const Tensor& input, int axis) {
  if (is_half(input)) return in_f32(input, [=](const Tensor& wide) { return log_softmax(wide, axis); });
  if (const int last = input.rank() - 1; normal_axis("log_softmax", axis, input.rank()) != last)
    return transpose(log_softmax(transpose(input, axis, last)), axis, last);
  const Tensor x = dense_f32("log_softmax", input), y = Tensor::empty(x.shape(), DType::f32, x.device());
  const int64_t width = x.size(-1), rows = x.count() / std::max<int64_t>(width, 1);
  HWY_DYNAMIC_DISPATCH(log_softmax_forward)(raw<float>(x), raw<float>(y), rows, width);
  return record(op::log_softmax, y, {input}, [y, rows, width](const Tensor& gradient) {
    const Tensor g = contiguous(gradient), dx = Tensor::empty(y.shape(), DType::f32, y.device());
    HWY_DYNAMIC_DISPATCH(log_softmax_gradient)(raw<float>(y), raw<float>(g), raw<float>(dx), rows, width);
    return Grads{dx};
  });
}

}  // namespace heed
#endif
