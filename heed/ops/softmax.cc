// Softmax and its logarithm over one axis. A row is read while it is in the nearest cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/softmax.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/row_reduce.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/ops.h"
#include "heed/ops/softmax.h"
#include "heed/ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

inline constexpr int kShortRow = 16;  // registers: 256 numbers with AVX-512, enough for the maps of a vision transformer

// One row that fits into `vectors` registers: read once, written once.
template <int vectors, class T>
HWY_INLINE void softmax_short_row(const T* x, T* y, int64_t width) {
  const int64_t step = lane_count(), rest = width - (vectors - 1) * step;
  Lanes row[vectors];
  for (int v = 0; v + 1 < vectors; ++v) row[v] = Lanes::load(x + v * step);
  row[vectors - 1] = first_lanes(load_some(x + (vectors - 1) * step, rest), rest, -HUGE_VALF);
  Lanes row_max = row[0], row_sum = 0;
  for (int v = 1; v < vectors; ++v) row_max = max(row_max, row[v]);
  row_max = largest(row_max);
  for (int v = 0; v < vectors; ++v) {
    row[v] = exp_below(row[v] - row_max);
    row_sum = row_sum + row[v];
  }
  const Lanes scale = 1 / Lanes(sum(row_sum));
  for (int v = 0; v + 1 < vectors; ++v) (row[v] * scale).store(y + v * step);
  store_some(row[vectors - 1] * scale, y + (vectors - 1) * step, rest);
}

template <int vectors = 1, class T>
void softmax_short(const T* x, T* y, int64_t rows, int64_t width) {
  if constexpr (vectors < kShortRow) {
    if (width > vectors * lane_count()) return softmax_short<vectors + 1>(x, y, rows, width);
  }
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) softmax_short_row<vectors>(x + row * width, y + row * width, width);
  });
}

// exp(x - max) / sum. Exponentials of f32 rows wait in y; those of bf16 rows would be rounded there and are computed twice.
template <class T>
HWY_INLINE void softmax_row(const T* x, T* y, int64_t width) {
  const Lanes row_max = max_over(width, [&](int64_t i, auto load) HEED_LANES { return load(x + i); });
  const auto exponential = [&](int64_t i, auto load) HEED_LANES { return exp_below(load(x + i) - row_max); };
  if constexpr (std::is_same_v<T, float>) {
    const Lanes scale = 1 / sum_stored(width, y, exponential);
    for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES { store(y + i, load(y + i) * scale); });
  } else {
    const Lanes scale = 1 / sum_over(width, exponential);
    for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES { store(y + i, exponential(i, load) * scale); });
  }
}

// x - max - log(sum(exp(x - max)))
template <class T>
HWY_INLINE void log_softmax_row(const T* x, T* y, int64_t width) {
  const Lanes row_max = max_over(width, [&](int64_t i, auto load) HEED_LANES { return load(x + i); });
  const float row_sum = sum_over(width, [&](int64_t i, auto load) HEED_LANES { return exp_below(load(x + i) - row_max); });
  const Lanes shift = std::log(row_sum);
  for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES { store(y + i, load(x + i) - row_max - shift); });
}

// dx = y (g - sum(g y))
template <class T>
HWY_INLINE void softmax_row_gradient(const T* y, const T* g, T* dx, int64_t width) {
  const Lanes shared = sum_over(width, [&](int64_t i, auto load) HEED_LANES { return load(g + i) * load(y + i); });
  for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES { store(dx + i, load(y + i) * (load(g + i) - shared)); });
}

// dx = g - exp(y) sum(g)
template <class T>
HWY_INLINE void log_softmax_row_gradient(const T* y, const T* g, T* dx, int64_t width) {
  const Lanes total = sum_over(width, [&](int64_t i, auto load) HEED_LANES { return load(g + i); });
  for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES { store(dx + i, load(g + i) - exp_below(load(y + i)) * total); });
}

template <class T>
void forward_typed(const SoftmaxForward& a, const T* x, T* y) {
  if (!a.log && a.width <= kShortRow * lane_count()) return softmax_short(x, y, a.rows, a.width);
  parallel_for(a.rows, rows_per_task(a.width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin * a.width; at < end * a.width; at += a.width)
      a.log ? log_softmax_row(x + at, y + at, a.width) : softmax_row(x + at, y + at, a.width);
  });
}

template <class T>
void backward_typed(const SoftmaxBackward& a, const T* y, const T* g, T* dx) {
  parallel_for(a.rows, rows_per_task(a.width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin * a.width; at < end * a.width; at += a.width)
      a.log ? log_softmax_row_gradient(y + at, g + at, dx + at, a.width) : softmax_row_gradient(y + at, g + at, dx + at, a.width);
  });
}

void softmax_forward_all(const SoftmaxForward& a) {
  with_storage(a.dtype, [&]<class T>(T) { forward_typed(a, static_cast<const T*>(a.x), static_cast<T*>(a.y)); });
}

void softmax_backward_all(const SoftmaxBackward& a) {
  with_storage(a.dtype,
               [&]<class T>(T) { backward_typed(a, static_cast<const T*>(a.y), static_cast<const T*>(a.g), static_cast<T*>(a.dx)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(softmax_forward_all);
HWY_EXPORT(softmax_backward_all);

void cpu::softmax_forward(const SoftmaxForward& args) { HWY_DYNAMIC_DISPATCH(softmax_forward_all)(args); }
void cpu::softmax_backward(const SoftmaxBackward& args) { HWY_DYNAMIC_DISPATCH(softmax_backward_all)(args); }

namespace {

Tensor softmax_over(OpName name, bool log, const Tensor& input, int axis) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return softmax_over(name, log, wide, axis); });
  if (const int last = input.rank() - 1; normal_axis(name.text, axis, input.rank()) != last)
    return transpose(softmax_over(name, log, transpose(input, axis, last), last), axis, last);
  const Tensor x = dense_storage(name.text, input), y = Tensor::empty(x.shape(), x.dtype(), x.device());
  const int64_t width = x.size(-1), rows = x.count() / std::max<int64_t>(width, 1);
  launch(softmax_forward, x.device(),
         {.x = Raw::bytes(x), .y = Raw::bytes(y), .rows = rows, .width = width, .dtype = x.dtype(), .log = log});
  return record(name, y, {input}, [y, rows, width, log](const Tensor& gradient) {
    const Tensor g = contiguous(gradient), dx = Tensor::empty(y.shape(), y.dtype(), y.device());
    launch(softmax_backward, y.device(),
           {.y = Raw::bytes(y), .g = Raw::bytes(g), .dx = Raw::bytes(dx), .rows = rows, .width = width, .dtype = y.dtype(), .log = log});
    return Grads{dx};
  });
}

}  // namespace

Tensor softmax(const Tensor& x, int axis) { return softmax_over(op::softmax, false, x, axis); }
Tensor log_softmax(const Tensor& x, int axis) { return softmax_over(op::log_softmax, true, x, axis); }

}  // namespace heed
#endif
