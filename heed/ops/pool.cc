// Pooling over windows of an image. Every plane (one channel of one image) is on its own.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/pool.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <cmath>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"
#include "heed/ops/window.h"

#ifndef HEED_OPS_POOL_CC_
#define HEED_OPS_POOL_CC_
namespace heed {

struct PoolSizes {
  int64_t planes;
  Pair image, places;
  Pool2d options;

  int64_t pixels() const { return image[0] * image[1]; }
  int64_t out_pixels() const { return places[0] * places[1]; }
};

struct PoolSpan {
  int64_t begin, end;
};

// The pixels under the window at a place of one axis; never none, since the padding is smaller than the kernel.
inline PoolSpan under(const PoolSizes& sizes, size_t axis, int64_t place) {
  const int64_t begin = place * sizes.options.stride[axis] - sizes.options.padding[axis];
  return {std::max<int64_t>(begin, 0), std::min(begin + sizes.options.kernel[axis], sizes.image[axis])};
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
  for_lanes(count, [&](int64_t i, auto load, auto store) HEED_LANES { store(sum + i, load(sum + i) + load(row + i)); });
}

// x: (planes, Y, X) -> y: (planes, OY, OX). The rows under a window are added first, whole, and then its columns.
void average_forward(const PoolSizes& sizes, const float* x, float* y) {
  const float share = 1.0f / static_cast<float>(sizes.options.kernel[0] * sizes.options.kernel[1]);
  for_planes(sizes, [&](int64_t plane) HWY_ATTR {
    std::vector<float> column_sums(static_cast<size_t>(sizes.image[1]));
    const float* const from = x + plane * sizes.pixels();
    float* to = y + plane * sizes.out_pixels();
    for (int64_t row = 0; row < sizes.places[0]; ++row) {
      const PoolSpan rows = under(sizes, 0, row);
      std::copy_n(from + rows.begin * sizes.image[1], sizes.image[1], column_sums.data());
      for (int64_t i = rows.begin + 1; i < rows.end; ++i) add_row(column_sums.data(), from + i * sizes.image[1], sizes.image[1]);
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
    std::vector<float> spread(static_cast<size_t>(sizes.image[1]));
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
      for (int64_t i = rows.begin; i < rows.end; ++i) add_row(to + i * sizes.image[1], spread.data(), sizes.image[1]);
    }
  });
}

// Every stride-th float.
static HWY_INLINE Lanes load_strided(const float* from, int64_t stride) {
  const FloatTag tag;
  if (stride == 1) return Lanes::load(from);
  if (stride == 2) {
    hn::Vec<FloatTag> even, odd;
    hn::LoadInterleaved2(tag, from, even, odd);
    return even;
  }
  return hn::GatherIndex(tag, from, hn::Mul(hn::Iota(IntTag(), 0), hn::Set(IntTag(), static_cast<int32_t>(stride))));
}

// Whether a is larger than b, where NaN is the largest number.
static HWY_INLINE LaneMask beats(Lanes a, Lanes b) {
  return {hn::Or(hn::Gt(a.v, b.v), hn::And(hn::Not(hn::Eq(a.v, a.v)), hn::Eq(b.v, b.v)))};
}

// x: (planes, Y, X) -> y: (planes, OY, OX) and, unless null, where in its plane each maximum is: the first of equal ones.
// Every column under a window gives its maximum first, and then the columns compete; branches would be guesses.
void max_forward(const PoolSizes& sizes, const float* x, float* y, int32_t* where) {
  const Pair kernel = sizes.options.kernel, stride = sizes.options.stride, padding = sizes.options.padding;
  const int64_t width = sizes.image[1], step = lane_count();  // whole numbers up to 2^24 are exact as lanes; kernels are smaller
  // Padding is beaten by everything, and the last register may read beyond it.
  const int64_t room = std::max(width + 2 * padding[1], (sizes.places[1] + step) * stride[1] + kernel[1]);
  for_planes(sizes, [&](int64_t plane) HWY_ATTR {
    std::vector<float> highest(static_cast<size_t>(room), -HUGE_VALF),
        highest_row(static_cast<size_t>(room), static_cast<float>(kernel[0]));
    const float* const from = x + plane * sizes.pixels();
    for (int64_t row = 0; row < sizes.places[0]; ++row) {
      const PoolSpan rows = under(sizes, 0, row);
      const int64_t top = row * stride[0] - padding[0];
      for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES {
        Lanes value = load(from + rows.begin * width + i), at(static_cast<float>(rows.begin - top));
        for (int64_t next = rows.begin + 1; next < rows.end; ++next) {
          const Lanes other = load(from + next * width + i);
          const LaneMask better = beats(other, value);
          value = select(better, other, value);
          at = select(better, Lanes(static_cast<float>(next - top)), at);
        }
        store(highest.data() + padding[1] + i, value);
        store(highest_row.data() + padding[1] + i, at);
      });
      for (int64_t column = 0; column < sizes.places[1]; column += step) {
        Lanes value = load_strided(highest.data() + column * stride[1], stride[1]), at_column(0);
        Lanes at_row = load_strided(highest_row.data() + column * stride[1], stride[1]);
        for (int64_t next = 1; next < kernel[1]; ++next) {
          const Lanes other = load_strided(highest.data() + column * stride[1] + next, stride[1]);
          const Lanes other_row = load_strided(highest_row.data() + column * stride[1] + next, stride[1]);
          const LaneMask better{hn::Or(beats(other, value).m, hn::And((other == value).m, (other_row < at_row).m))};
          value = select(better, other, value);
          at_row = select(better, other_row, at_row);
          at_column = select(better, Lanes(static_cast<float>(next)), at_column);
        }
        const int64_t out = plane * sizes.out_pixels() + row * sizes.places[1] + column, count = std::min(step, sizes.places[1] - column);
        store_some(value, y + out, count);
        if (where == nullptr) continue;
        HWY_ALIGN float rows_at[kLanes], columns_at[kLanes];
        hn::Store(at_row.v, FloatTag(), rows_at);
        hn::Store(at_column.v, FloatTag(), columns_at);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t left = (column + i) * stride[1] - padding[1];
          where[out + i] =
              static_cast<int32_t>((top + static_cast<int64_t>(rows_at[i])) * width + left + static_cast<int64_t>(columns_at[i]));
        }
      }
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
HWY_EXPORT(max_forward);

namespace {

PoolSizes sizes_of(const char* op, const Tensor& x, const Pool2d& options) {
  check(x.rank() == 4, op, ": x has shape ", x.shape(), ", expected (B, C, Y, X)");
  const Pair image{x.size(2), x.size(3)};
  const Pair places = window_places(op, image, options.kernel, options.stride, options.padding, {1, 1});
  for (size_t axis = 0; axis < 2; ++axis)
    check(options.padding[axis] < options.kernel[axis], op, ": the padding ", options.padding[axis], " is not smaller than the kernel ",
          options.kernel[axis]);
  return {.planes = x.size(0) * x.size(1), .image = image, .places = places, .options = options};
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
  check(sizes.pixels() <= INT32_MAX, "max_pool2d: the image has ", sizes.pixels(), " pixels, expected at most ", INT32_MAX);
  const Tensor y = Tensor::empty({x.size(0), x.size(1), sizes.places[0], sizes.places[1]}, DType::f32, x.device());
  const Tensor where = tracking({&input}) ? Tensor::empty(y.shape(), DType::i32, x.device()) : Tensor();
  HWY_DYNAMIC_DISPATCH(max_forward)(sizes, raw<float>(x), raw<float>(y), where.defined() ? raw<int32_t>(where) : nullptr);
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
