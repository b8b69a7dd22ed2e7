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

// y = exp(x - max) / sum. x, y: (rows, width)
void softmax_forward(const float* x, float* y, int64_t rows, int64_t width) {
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const float* from = x + row * width;
      float* to = y + row * width;
      const Lanes top = max_over(width, [&](int64_t i, auto load) HWY_ATTR { return load(from + i); });
      for_lanes(width, [&](int64_t i, auto load, auto store) HWY_ATTR { store(to + i, exp(load(from + i) - top)); });
      const Lanes scale = 1 / sum_over(width, [&](int64_t i, auto load) HWY_ATTR { return load(to + i); });
      for_lanes(width, [&](int64_t i, auto load, auto store) HWY_ATTR { store(to + i, load(to + i) * scale); });
    }
  });
}

// dx = y (g - sum(g y))
void softmax_gradient(const float* y, const float* g, float* dx, int64_t rows, int64_t width) {
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin * width; at < end * width; at += width) {
      const Lanes shared = sum_over(width, [&](int64_t i, auto load) HWY_ATTR { return load(g + at + i) * load(y + at + i); });
      for_lanes(width, [&](int64_t i, auto load, auto store) HWY_ATTR { store(dx + at + i, load(y + at + i) * (load(g + at + i) - shared)); });
    }
  });
}

// y = x - max - log(sum(exp(x - max)))
void log_softmax_forward(const float* x, float* y, int64_t rows, int64_t width) {
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin * width; at < end * width; at += width) {
      const Lanes top = max_over(width, [&](int64_t i, auto load) HWY_ATTR { return load(x + at + i); });
      const float total = sum_over(width, [&](int64_t i, auto load) HWY_ATTR { return exp(load(x + at + i) - top); });
      const Lanes shift = std::log(total);
      for_lanes(width, [&](int64_t i, auto load, auto store) HWY_ATTR { store(y + at + i, load(x + at + i) - top - shift); });
    }
  });
}

// dx = g - exp(y) sum(g)
void log_softmax_gradient(const float* y, const float* g, float* dx, int64_t rows, int64_t width) {
  parallel_for(rows, rows_per_task(width), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin * width; at < end * width; at += width) {
      const Lanes total = sum_over(width, [&](int64_t i, auto load) HWY_ATTR { return load(g + at + i); });
      for_lanes(width, [&](int64_t i, auto load, auto store) HWY_ATTR { store(dx + at + i, load(g + at + i) - exp(load(y + at + i)) * total); });
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
