// Pooling over windows of an image. Planes (one channel of one image) are independent.
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
#include "heed/ops/pool.h"
#include "heed/ops/storage.h"

#ifndef HEED_OPS_POOL_CC_
#define HEED_OPS_POOL_CC_
namespace heed {

struct PoolSpan {
  int64_t begin, end;
};

// The pixels under the window at a place of one axis; never none, since the padding is smaller than the kernel.
inline PoolSpan under(const Window2d& window, size_t axis, int64_t place) {
  const int64_t begin = place * window.stride[axis] - window.padding[axis];
  return {std::max<int64_t>(begin, 0), std::min(begin + window.kernel[axis], window.image[axis])};
}

template <class Args, class Body>
void for_planes(const Args& args, const Body& body) {
  parallel_for(args.planes, (1 << 14) / args.window.pixels(), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  });
}

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

template <class From, class To>
static HWY_INLINE void copy_row(const From* from, To* to, int64_t count) {
  if constexpr (std::is_same_v<From, To>) {
    std::copy_n(from, count, to);
    return;
  }
  for_lanes(count, [&](int64_t i, auto load, auto store) HEED_LANES { store(to + i, load(from + i)); });
}

// A plane of gradients that is summed in f32: the plane itself if it is f32, else separate memory, rounded once at the end.
template <class T>
struct PlaneSum {
  explicit PlaneSum(int64_t pixels) : sums(static_cast<size_t>(pixels)) {}
  HWY_ATTR float* begin(T*) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    return sums.data();
  }
  HWY_ATTR void finish(T* plane) const { copy_row(sums.data(), plane, static_cast<int64_t>(sums.size())); }

  std::vector<float> sums;
};
template <>
struct PlaneSum<float> {
  explicit PlaneSum(int64_t pixels) : count(pixels) {}
  float* begin(float* plane) const {
    std::fill_n(plane, count, 0.0f);
    return plane;
  }
  void finish(float*) const {}

  int64_t count;
};

template <class T>
void max_backward(const MaxPoolBackward& a) {
  for_planes(a, [&](int64_t plane) HWY_ATTR {
    T* const dx = static_cast<T*>(a.dx) + plane * a.window.pixels();
    PlaneSum<T> sums(a.window.pixels());
    float* const to = sums.begin(dx);
    const T* const g = static_cast<const T*>(a.g);
    const int64_t begin = plane * a.window.out_pixels();
    for (int64_t i = begin; i < begin + a.window.out_pixels(); ++i) to[a.where[i]] += convert<float>(g[i]);
    sums.finish(dx);
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

// First the maximum of every column of a window, then the maximum of these; without branches, which would be mispredicted.
template <class T>
void max_forward(const MaxPoolForward& a) {
  const Window2d& window = a.window;
  const int64_t *kernel = window.kernel, *stride = window.stride, *padding = window.padding;
  const int64_t width = window.image[1], step = lane_count();  // whole numbers up to 2^24 are exact as lanes; kernels are smaller
  T* const y = static_cast<T*>(a.y);
  // Padding is beaten by everything, and the last register may read beyond it.
  const int64_t padded = std::max(width + 2 * padding[1], (window.places[1] + step) * stride[1] + kernel[1]);
  for_planes(a, [&](int64_t plane) HWY_ATTR {
    std::vector<float> highest(static_cast<size_t>(padded), -HUGE_VALF),
        highest_row(static_cast<size_t>(padded), static_cast<float>(kernel[0]));
    const T* const from = static_cast<const T*>(a.x) + plane * window.pixels();
    for (int64_t row = 0; row < window.places[0]; ++row) {
      const PoolSpan rows = under(window, 0, row);
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
      for (int64_t column = 0; column < window.places[1]; column += step) {
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
        const int64_t out = plane * window.out_pixels() + row * window.places[1] + column,
                      count = std::min(step, window.places[1] - column);
        store_some(value, y + out, count);
        if (a.where == nullptr) continue;
        HWY_ALIGN float rows_at[kLanes], columns_at[kLanes];
        hn::Store(at_row.v, FloatTag(), rows_at);
        hn::Store(at_column.v, FloatTag(), columns_at);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t left = (column + i) * stride[1] - padding[1];
          a.where[out + i] =
              static_cast<int32_t>((top + static_cast<int64_t>(rows_at[i])) * width + left + static_cast<int64_t>(columns_at[i]));
        }
      }
    }
  });
}

void max_forward_all(const MaxPoolForward& a) {
  with_storage(a.dtype, [&]<class T>(T) { max_forward<T>(a); });
}
void max_backward_all(const MaxPoolBackward& a) {
  with_storage(a.dtype, [&]<class T>(T) { max_backward<T>(a); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(max_forward_all);
HWY_EXPORT(max_backward_all);

void cpu::max_pool_forward(const MaxPoolForward& args) { HWY_DYNAMIC_DISPATCH(max_forward_all)(args); }
void cpu::max_pool_backward(const MaxPoolBackward& args) { HWY_DYNAMIC_DISPATCH(max_backward_all)(args); }

namespace {

Window2d window_of(const Tensor& x, const Pool2d& options) {
  check(x.rank() == 4, "max_pool2d: x has shape ", x.shape(), ", expected (B, C, Y, X)");
  const Window2d window = checked_window("max_pool2d", {x.size(2), x.size(3)}, options.kernel, options.stride, options.padding, {1, 1});
  for (int axis = 0; axis < 2; ++axis)
    check(window.padding[axis] < window.kernel[axis], "max_pool2d: the padding ", window.padding[axis], " is not smaller than the kernel ",
          window.kernel[axis]);
  return window;
}

}  // namespace

Tensor max_pool2d(const Tensor& input, const Pool2d& options) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return max_pool2d(wide, options); });
  const Tensor x = dense_storage("max_pool2d", input);
  const Window2d window = window_of(x, options);
  check(window.pixels() <= INT32_MAX, "max_pool2d: the image has ", window.pixels(), " pixels, expected at most ", INT32_MAX);
  const Tensor y = Tensor::empty({x.size(0), x.size(1), window.places[0], window.places[1]}, x.dtype(), x.device());
  const Tensor where = tracking({&input}) ? Tensor::empty(y.shape(), DType::i32, x.device()) : Tensor();
  const int64_t planes = x.size(0) * x.size(1);
  launch(max_pool_forward, x.device(),
         {.x = Raw::bytes(x),
          .y = Raw::bytes(y),
          .where = raw_or_null<int32_t>(where),
          .planes = planes,
          .window = window,
          .dtype = x.dtype()});
  return record(op::max_pool2d, y, {input}, [window, planes, where, before = x.shape()](const Tensor& gradient) {
    const Tensor g = contiguous(gradient), dx = Tensor::empty(before, g.dtype(), g.device());
    launch(
        max_pool_backward, g.device(),
        {.g = Raw::bytes(g), .where = raw<int32_t>(where), .dx = Raw::bytes(dx), .planes = planes, .window = window, .dtype = g.dtype()});
    return Grads{dx};
  });
}

}  // namespace heed
#endif
