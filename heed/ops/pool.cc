// Pooling over windows of a picture. Every plane (one channel of one image) is on its own.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/pool.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <vector>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/half.h"
#include "heed/ops/ops.h"
#include "heed/ops/window.h"

#ifndef HEED_OPS_POOL_CC_
#define HEED_OPS_POOL_CC_
namespace heed {

struct PoolSizes {
  int64_t planes;
  Pair picture, places;
  Pool2d options;

  int64_t pixels() const { return picture[0] * picture[1]; }
  int64_t out_pixels() const { return places[0] * places[1]; }
};

struct PoolSpan {
  int64_t begin, end;
};

// The pixels under the window at a place of one axis; never none, since the padding is smaller than the kernel.
inline PoolSpan under(const PoolSizes& sizes, size_t axis, int64_t place) {
  const int64_t begin = place * sizes.options.stride[axis] - sizes.options.padding[axis];
  return {std::max<int64_t>(begin, 0), std::min(begin + sizes.options.kernel[axis], sizes.picture[axis])};
}

template <class Body>
void for_planes(const PoolSizes& sizes, const Body& body) {
  parallel_for(sizes.planes, (1 << 14) / sizes.pixels(), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  });
}

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

static HWY_INLINE void add_row(float* sum, const float* row, int64_t count) {
  for_lanes(count, [&](int64_t i, auto load, auto store) HWY_ATTR { store(sum + i, load(sum + i) + load(row + i)); });
}

// x: (planes, Y, X) -> y: (planes, OY, OX). The rows under a window are added first, whole, and then its columns.
void average_forward(const PoolSizes& sizes, const float* x, float* y) {
  const float share = 1.0f / static_cast<float>(sizes.options.kernel[0] * sizes.options.kernel[1]);
  for_planes(sizes, [&](int64_t plane) HWY_ATTR {
    std::vector<float> column_sums(static_cast<size_t>(sizes.picture[1]));
    const float* const from = x + plane * sizes.pixels();
    float* to = y + plane * sizes.out_pixels();
    for (int64_t row = 0; row < sizes.places[0]; ++row) {
      const PoolSpan rows = under(sizes, 0, row);
      std::copy_n(from + rows.begin * sizes.picture[1], sizes.picture[1], column_sums.data());
      for (int64_t i = rows.begin + 1; i < rows.end; ++i) add_row(column_sums.data(), from + i * sizes.picture[1], sizes.picture[1]);
      for (int64_t column = 0; column < sizes.places[1]; ++column) {
        const PoolSpan columns = under(sizes, 1, column);
        float total = 0;
        for (int64_t j = columns.begin; j < columns.end; ++j) total += column_sums[static_cast<size_t>(j)];
        *to++ = total * share;
      }
    }
  });
}

// g: (planes, OY, OX) -> dx: (planes, Y, X)
void average_gradient(const PoolSizes& sizes, const float* g, float* dx) {
  const float share = 1.0f / static_cast<float>(sizes.options.kernel[0] * sizes.options.kernel[1]);
  for_planes(sizes, [&](int64_t plane) HWY_ATTR {
    std::vector<float> spread(static_cast<size_t>(sizes.picture[1]));
    const float* from = g + plane * sizes.out_pixels();
    float* const to = dx + plane * sizes.pixels();
    std::fill_n(to, sizes.pixels(), 0.0f);
    for (int64_t row = 0; row < sizes.places[0]; ++row) {
      std::fill(spread.begin(), spread.end(), 0.0f);
      for (int64_t column = 0; column < sizes.places[1]; ++column, ++from) {
        const PoolSpan columns = under(sizes, 1, column);
        for (int64_t j = columns.begin; j < columns.end; ++j) spread[static_cast<size_t>(j)] += *from * share;
      }
      const PoolSpan rows = under(sizes, 0, row);
      for (int64_t i = rows.begin; i < rows.end; ++i) add_row(to + i * sizes.picture[1], spread.data(), sizes.picture[1]);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(average_forward);
HWY_EXPORT(average_gradient);

namespace {

PoolSizes sizes_of(const char* op, const Tensor& x, const Pool2d& options) {
  check(x.rank() == 4, op, ": x has shape ", x.shape(), ", expected (B, C, Y, X)");
  const Pair picture{x.size(2), x.size(3)};
  const Pair places = window_places(op, picture, options.kernel, options.stride, options.padding, {1, 1});
  for (size_t axis = 0; axis < 2; ++axis)
    check(options.padding[axis] < options.kernel[axis], op, ": the padding ", options.padding[axis], " is not smaller than the kernel ",
          options.kernel[axis]);
  return {.planes = x.size(0) * x.size(1), .picture = picture, .places = places, .options = options};
}

// x: (planes, Y, X) -> y: (planes, OY, OX) and, unless null, where in its plane each maximum is. The first of equal ones
// counts, and NaN counts as the largest number.
void max_forward(const PoolSizes& sizes, const float* x, float* y, int32_t* where) {
  for_planes(sizes, [&](int64_t plane) {
    const float* const from = x + plane * sizes.pixels();
    int64_t out = plane * sizes.out_pixels();
    for (int64_t row = 0; row < sizes.places[0]; ++row) {
      const PoolSpan rows = under(sizes, 0, row);
      for (int64_t column = 0; column < sizes.places[1]; ++column, ++out) {
        const PoolSpan columns = under(sizes, 1, column);
        int64_t place = rows.begin * sizes.picture[1] + columns.begin;
        float best = from[place];
        for (int64_t i = rows.begin; i < rows.end; ++i)
          for (int64_t j = columns.begin; j < columns.end; ++j) {
            const float value = from[i * sizes.picture[1] + j];
            if (value > best || (value != value && best == best)) {
              best = value;
              place = i * sizes.picture[1] + j;
            }
          }
        y[out] = best;
        if (where != nullptr) where[out] = static_cast<int32_t>(place);
      }
    }
  });
}

// g, where: (planes, OY, OX) -> dx: (planes, Y, X)
void max_gradient(const PoolSizes& sizes, const float* g, const int32_t* where, float* dx) {
  for_planes(sizes, [&](int64_t plane) {
    float* const to = dx + plane * sizes.pixels();
    std::fill_n(to, sizes.pixels(), 0.0f);
    const int64_t begin = plane * sizes.out_pixels();
    for (int64_t i = begin; i < begin + sizes.out_pixels(); ++i) to[where[i]] += g[i];
  });
}

}  // namespace

Tensor max_pool2d(const Tensor& input, const Pool2d& options) {
  if (is_half(input)) return in_f32(input, [&](const Tensor& wide) { return max_pool2d(wide, options); });
  const Tensor x = dense_f32("max_pool2d", input);
  const PoolSizes sizes = sizes_of("max_pool2d", x, options);
  check(sizes.pixels() <= INT32_MAX, "max_pool2d: the picture has ", sizes.pixels(), " pixels, expected at most ", INT32_MAX);
  const Tensor y = Tensor::empty({x.size(0), x.size(1), sizes.places[0], sizes.places[1]}, DType::f32, x.device());
  const Tensor where = tracking({&input}) ? Tensor::empty(y.shape(), DType::i32, x.device()) : Tensor();
  max_forward(sizes, raw<float>(x), raw<float>(y), where.defined() ? raw<int32_t>(where) : nullptr);
  return record(op::max_pool2d, y, {input}, [sizes, where, before = x.shape()](const Tensor& gradient) {
    const Tensor g = contiguous(gradient), dx = Tensor::empty(before, DType::f32, g.device());
    max_gradient(sizes, raw<float>(g), raw<int32_t>(where), raw<float>(dx));
    return Grads{dx};
  });
}

Tensor average_pool2d(const Tensor& input, const Pool2d& options) {
  if (is_half(input)) return in_f32(input, [&](const Tensor& wide) { return average_pool2d(wide, options); });
  const Tensor x = dense_f32("average_pool2d", input);
  const PoolSizes sizes = sizes_of("average_pool2d", x, options);
  const Tensor y = Tensor::empty({x.size(0), x.size(1), sizes.places[0], sizes.places[1]}, DType::f32, x.device());
  HWY_DYNAMIC_DISPATCH(average_forward)(sizes, raw<float>(x), raw<float>(y));
  return record(op::average_pool2d, y, {input}, [sizes, before = x.shape()](const Tensor& gradient) {
    const Tensor g = contiguous(gradient), dx = Tensor::empty(before, DType::f32, g.device());
    HWY_DYNAMIC_DISPATCH(average_gradient)(sizes, raw<float>(g), raw<float>(dx));
    return Grads{dx};
  });
}

}  // namespace heed
#endif
