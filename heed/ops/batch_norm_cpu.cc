// batch_norm on the CPU. Every channel is cut into blocks of images; a block is read from memory
// once, and the results of the blocks are combined in double, from the first to the last.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/batch_norm_cpu.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <algorithm>
#include <cmath>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/batch_norm.h"

#ifndef HEED_OPS_BATCH_NORM_CPU_CC_
#define HEED_OPS_BATCH_NORM_CPU_CC_
namespace heed {

// body(channel, block, first image, images) for every block of every channel.
template <class Body>
void for_blocks(const BatchSizes& sizes, const Body& body) {
  const int64_t per_block = sizes.images_per_block(), blocks = sizes.blocks();
  parallel_for(sizes.channels * blocks, (1 << 13) / std::max<int64_t>(1, per_block * sizes.pixels), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i % blocks, first = block * per_block;
      body(i / blocks, block, first, std::min(per_block, sizes.images - first));
    }
  });
}

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Calls body(offset, load, store, keep) a register at a time over a channel in some images; keep(v) is v with zeros in
// the lanes that hold no pixel.
template <class Body>
static HWY_INLINE void for_pixels(const BatchSizes& sizes, int64_t channel, int64_t first, int64_t images, const Body& body) {
  const int64_t whole = sizes.pixels / lane_count() * lane_count(), rest = sizes.pixels - whole;
  for (int64_t image = first; image < first + images; ++image) {
    const int64_t start = (image * sizes.channels + channel) * sizes.pixels;
    for (int64_t i = 0; i < whole; i += lane_count())
      body(
          start + i, [](const auto* p) HEED_LANES { return Lanes::load(p); }, [](auto* p, Lanes v) HEED_LANES { v.store(p); },
          [](Lanes v) HEED_LANES { return v; });
    if (rest > 0)
      body(
          start + whole, [=](const auto* p) HEED_LANES { return load_some(p, rest); },
          [=](auto* p, Lanes v) HEED_LANES { store_some(v, p, rest); },
          [=](Lanes v) HEED_LANES { return Lanes(hn::IfThenElseZero(hn::FirstN(FloatTag(), static_cast<size_t>(rest)), v.v)); });
  }
}

// Of every block: approximately the mean, the sum of distances from that, and the sum of their squares. The distances
// correct the rounding error of the mean. found: (C, blocks, 3)
template <class T>
void block_moments(const BatchSizes& sizes, const T* x, float* found) {
  for_blocks(sizes, [&, blocks = sizes.blocks()](int64_t channel, int64_t block, int64_t first, int64_t images) HWY_ATTR {
    Lanes total(0), distances(0), squares(0);
    for_pixels(sizes, channel, first, images, [&](int64_t i, auto load, auto, auto) HEED_LANES { total = total + load(x + i); });
    const float mean = sum(total) / static_cast<float>(images * sizes.pixels);
    for_pixels(sizes, channel, first, images, [&](int64_t i, auto load, auto, auto keep) HEED_LANES {
      const Lanes distance = keep(load(x + i) - mean);
      distances = distances + distance;
      squares = fma(distance, distance, squares);
    });
    float* const to = found + (channel * blocks + block) * 3;
    to[0] = mean;
    to[1] = sum(distances);
    to[2] = sum(squares);
  });
}

// y = (x - mean) factor + bias; factor: (C)
template <class T>
void normalise(const BatchNormForward& n, const float* factor) {
  const T* const x = static_cast<const T*>(n.x);
  T* const y = static_cast<T*>(n.y);
  for_blocks(n.sizes, [&](int64_t channel, int64_t, int64_t first, int64_t images) HWY_ATTR {
    const Lanes mean(n.mean[channel]), scale(factor[channel]), offset(n.bias[channel]);
    for_pixels(n.sizes, channel, first, images,
               [&](int64_t i, auto load, auto store, auto) HEED_LANES { store(y + i, fma(load(x + i) - mean, scale, offset)); });
  });
}

// Of every block: the sums of g and of g (x - mean). found: (C, blocks, 2)
template <class T>
void block_gradients(const BatchNormBackward& n, float* found) {
  const T *const x = static_cast<const T*>(n.x), *const g = static_cast<const T*>(n.g);
  for_blocks(n.sizes, [&, blocks = n.sizes.blocks()](int64_t channel, int64_t block, int64_t first, int64_t images) HWY_ATTR {
    Lanes total(0), product(0);
    const Lanes mean(n.mean[channel]);
    for_pixels(n.sizes, channel, first, images, [&](int64_t i, auto load, auto, auto) HEED_LANES {
      const Lanes gradient = load(g + i);
      total = total + gradient;
      product = fma(gradient, load(x + i) - mean, product);
    });
    float* const to = found + (channel * blocks + block) * 2;
    to[0] = sum(total);
    to[1] = sum(product);
  });
}

// dx = factor (g - shift - slope (x - mean)); factor, shift, slope: (C)
template <class T>
void input_gradient(const BatchNormBackward& n, const float* factor, const float* shift, const float* slope) {
  const T *const x = static_cast<const T*>(n.x), *const g = static_cast<const T*>(n.g);
  T* const dx = static_cast<T*>(n.dx);
  for_blocks(n.sizes, [&](int64_t channel, int64_t, int64_t first, int64_t images) HWY_ATTR {
    const Lanes mean(n.mean[channel]), scale(factor[channel]), offset(shift[channel]), incline(slope[channel]);
    for_pixels(n.sizes, channel, first, images, [&](int64_t i, auto load, auto store, auto) HEED_LANES {
      store(dx + i, scale * (load(g + i) - offset - incline * (load(x + i) - mean)));
    });
  });
}

void block_moments_of(const BatchNormForward& n, float* found) {
  with_storage(n.dtype, [&]<class T>(T) { block_moments(n.sizes, static_cast<const T*>(n.x), found); });
}
void normalise_all(const BatchNormForward& n, const float* factor) {
  with_storage(n.dtype, [&]<class T>(T) { normalise<T>(n, factor); });
}
void block_gradients_of(const BatchNormBackward& n, float* found) {
  with_storage(n.dtype, [&]<class T>(T) { block_gradients<T>(n, found); });
}
void input_gradient_of(const BatchNormBackward& n, const float* factor, const float* shift, const float* slope) {
  with_storage(n.dtype, [&]<class T>(T) { input_gradient<T>(n, factor, shift, slope); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(block_moments_of);
HWY_EXPORT(normalise_all);
HWY_EXPORT(block_gradients_of);
HWY_EXPORT(input_gradient_of);

namespace {

float inverse_root(double variance, float eps) { return static_cast<float>(1 / std::sqrt(variance + static_cast<double>(eps))); }

// Statistics of this batch; moves the running ones towards them, with the unbiased estimate of the variance.
void batch_moments(const BatchNormForward& n, const float* block) {
  const BatchSizes& sizes = n.sizes;
  const auto all = static_cast<double>(sizes.values());
  const int64_t per_block = sizes.images_per_block();
  for (int64_t channel = 0; channel < sizes.channels; ++channel) {
    double count = 0, middle = 0, squares = 0;
    for (int64_t first = 0; first < sizes.images; first += per_block, block += 3) {
      // Chan, Golub and LeVeque 1979: joins the moments of two sets.
      const auto more = static_cast<double>(std::min(per_block, sizes.images - first) * sizes.pixels);
      const double distance = block[1] / more, apart = block[0] + distance - middle;
      squares += block[2] - distance * block[1] + apart * apart * count * more / (count + more);
      middle += apart * more / (count + more);
      count += more;
    }
    n.mean[channel] = static_cast<float>(middle);
    n.rstd[channel] = inverse_root(squares / all, n.eps);
    const auto follow = [&](float* running, double now) {
      if (running == nullptr) return;
      float& value = running[channel];
      value = static_cast<float>((1 - static_cast<double>(n.momentum)) * value + static_cast<double>(n.momentum) * now);
    };
    follow(n.running_mean, middle);
    follow(n.running_variance, squares / (all - 1));
  }
}

}  // namespace

void cpu::batch_norm_forward(const BatchNormForward& n) {
  const int64_t channels = n.sizes.channels;
  float *const factor = static_cast<float*>(n.workspace), *const found = factor + channels;  // (C), (C, blocks, 3)
  if (n.training) {
    HWY_DYNAMIC_DISPATCH(block_moments_of)(n, found);
    batch_moments(n, found);
  } else {
    std::copy_n(n.running_mean, channels, n.mean);
    for (int64_t channel = 0; channel < channels; ++channel) n.rstd[channel] = inverse_root(n.running_variance[channel], n.eps);
  }
  if (!n.y) return;
  for (int64_t channel = 0; channel < channels; ++channel) factor[channel] = n.weight[channel] * n.rstd[channel];
  HWY_DYNAMIC_DISPATCH(normalise_all)(n, factor);
}

void cpu::batch_norm_backward(const BatchNormBackward& n) {
  const int64_t channels = n.sizes.channels, blocks = n.sizes.blocks();
  float* const found = static_cast<float*>(n.workspace);  // (C, blocks, 2), then three of (C)
  float *const factor = found + channels * blocks * 2, *const shift = factor + channels, *const slope = shift + channels;
  if (!n.all_dw) HWY_DYNAMIC_DISPATCH(block_gradients_of)(n, found);
  const float* block = found;
  const double share = n.training ? 1 / static_cast<double>(n.all_dw ? n.all_values : n.sizes.values()) : 0;
  for (int64_t channel = 0; channel < channels; ++channel) {
    const double rstd = n.rstd[channel];
    double total = 0, product = 0;
    if (n.all_dw) {
      total = n.all_db[channel];
      product = n.all_dw[channel] / rstd;
    } else {
      for (int64_t i = 0; i < blocks; ++i, block += 2) total += block[0], product += block[1];
      n.db[channel] = static_cast<float>(total);
      n.dw[channel] = static_cast<float>(product * rstd);
    }
    // The mean and the variance of a batch depend on x; running ones do not.
    factor[channel] = static_cast<float>(n.weight[channel] * rstd);
    shift[channel] = static_cast<float>(total * share);
    slope[channel] = static_cast<float>(product * rstd * rstd * share);
  }
  if (n.dx) HWY_DYNAMIC_DISPATCH(input_gradient_of)(n, factor, shift, slope);
}

}  // namespace heed
#endif  // HWY_ONCE
