// Batch normalisation (Ioffe and Szegedy 2015). Every channel is cut into blocks of images; a block is read from memory
// once, and what the blocks found is put together in double, from the first to the last.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/batch_norm.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <cmath>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

#ifndef HEED_OPS_BATCH_NORM_CC_
#define HEED_OPS_BATCH_NORM_CC_
namespace heed {

// (images, channels, pixels) and how the images are cut.
struct BatchSizes {
  int64_t images, channels, pixels, images_per_block, blocks;

  int64_t values() const { return images * pixels; }  // of a channel
};

// body(channel, block, first image, images) for every block of every channel.
template <class Body>
void for_blocks(const BatchSizes& sizes, const Body& body) {
  parallel_for(sizes.channels * sizes.blocks, (1 << 13) / std::max<int64_t>(1, sizes.images_per_block * sizes.pixels),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t block = i % sizes.blocks, first = block * sizes.images_per_block;
                   body(i / sizes.blocks, block, first, std::min(sizes.images_per_block, sizes.images - first));
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
          start + i, [](const float* p) HEED_LANES { return Lanes::load(p); }, [](float* p, Lanes v) HEED_LANES { v.store(p); },
          [](Lanes v) HEED_LANES { return v; });
    if (rest > 0)
      body(
          start + whole, [=](const float* p) HEED_LANES { return load_some(p, rest); },
          [=](float* p, Lanes v) HEED_LANES { store_some(v, p, rest); },
          [=](Lanes v) HEED_LANES { return Lanes(hn::IfThenElseZero(hn::FirstN(FloatTag(), static_cast<size_t>(rest)), v.v)); });
  }
}

// Of every block: nearly the mean, the sum of distances from that, and the sum of their squares. The distances repair
// what rounding did to the mean. x: (B, C, P) -> found: (C, blocks, 3)
void block_moments(const BatchSizes& sizes, const float* x, float* found) {
  for_blocks(sizes, [&](int64_t channel, int64_t block, int64_t first, int64_t images) HWY_ATTR {
    Lanes total(0), distances(0), squares(0);
    for_pixels(sizes, channel, first, images, [&](int64_t i, auto load, auto, auto) HEED_LANES { total = total + load(x + i); });
    const float mean = sum(total) / static_cast<float>(images * sizes.pixels);
    for_pixels(sizes, channel, first, images, [&](int64_t i, auto load, auto, auto keep) HEED_LANES {
      const Lanes distance = keep(load(x + i) - mean);
      distances = distances + distance;
      squares = fma(distance, distance, squares);
    });
    float* const to = found + (channel * sizes.blocks + block) * 3;
    to[0] = mean;
    to[1] = sum(distances);
    to[2] = sum(squares);
  });
}

// y = (x - mean) scale + shift. x, y: (B, C, P), mean, scale, shift: (C)
void normalise(const BatchSizes& sizes, const float* x, const float* mean, const float* scale, const float* shift, float* y) {
  for_blocks(sizes, [&](int64_t channel, int64_t, int64_t first, int64_t images) HWY_ATTR {
    const Lanes middle(mean[channel]), factor(scale[channel]), offset(shift[channel]);
    for_pixels(sizes, channel, first, images,
               [&](int64_t i, auto load, auto store, auto) HEED_LANES { store(y + i, fma(load(x + i) - middle, factor, offset)); });
  });
}

// Of every block: the sums of g and of g (x - mean). x, g: (B, C, P), mean: (C) -> found: (C, blocks, 2)
void block_gradients(const BatchSizes& sizes, const float* x, const float* mean, const float* g, float* found) {
  for_blocks(sizes, [&](int64_t channel, int64_t block, int64_t first, int64_t images) HWY_ATTR {
    Lanes total(0), product(0);
    const Lanes middle(mean[channel]);
    for_pixels(sizes, channel, first, images, [&](int64_t i, auto load, auto, auto) HEED_LANES {
      const Lanes arrived = load(g + i);
      total = total + arrived;
      product = fma(arrived, load(x + i) - middle, product);
    });
    float* const to = found + (channel * sizes.blocks + block) * 2;
    to[0] = sum(total);
    to[1] = sum(product);
  });
}

// dx = scale (g - shift - slope (x - mean)). x, g, dx: (B, C, P), the others: (C)
void input_gradient(const BatchSizes& sizes, const float* x, const float* g, const float* mean, const float* scale, const float* shift,
                    const float* slope, float* dx) {
  for_blocks(sizes, [&](int64_t channel, int64_t, int64_t first, int64_t images) HWY_ATTR {
    const Lanes middle(mean[channel]), factor(scale[channel]), offset(shift[channel]), incline(slope[channel]);
    for_pixels(sizes, channel, first, images, [&](int64_t i, auto load, auto store, auto) HEED_LANES {
      store(dx + i, factor * (load(g + i) - offset - incline * (load(x + i) - middle)));
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(block_moments);
HWY_EXPORT(normalise);
HWY_EXPORT(block_gradients);
HWY_EXPORT(input_gradient);

namespace {

// Without pixels the channels are columns: turned, so that kernels find the values of a channel behind one another.
bool must_transpose(const Tensor& x) { return x.size(0) > 1 && x.count() == x.size(0) * x.size(1); }

// x: (B, C, ...) -> (1, C, B), dense.
Tensor transposed(const Tensor& x) { return contiguous(x.view({1, x.size(1), x.size(0)}, {0, x.strides()[1], x.strides()[0]})); }

// x: (1, C, B), dense -> a view of `shape`, (B, C, 1, ...).
Tensor transposed_back(const Tensor& x, const Shape& shape) {
  Shape strides = dense_strides(shape);
  strides[0] = 1;
  strides[1] = shape[0];
  return x.view(shape, strides);
}

BatchSizes sizes_of(const Tensor& x) {
  const int64_t images = x.size(0), channels = x.size(1), pixels = x.count() / std::max<int64_t>(1, images * channels);
  const int64_t per_block = std::clamp<int64_t>((1 << 13) / std::max<int64_t>(pixels, 1), 1, std::max<int64_t>(images, 1));
  return {.images = images,
          .channels = channels,
          .pixels = pixels,
          .images_per_block = per_block,
          .blocks = (images + per_block - 1) / per_block};
}

struct Moments {
  Tensor mean, scale;  // (C); scale: 1 / sqrt(variance + eps)
};

float inverse_root(double variance, float eps) { return static_cast<float>(1 / std::sqrt(variance + static_cast<double>(eps))); }

// Statistics of this batch; moves the running ones towards them, with the unbiased estimate of the variance.
Moments batch_moments(const BatchSizes& sizes, const Tensor& x, const BatchNorm& state) {
  const Tensor found = Tensor::empty({sizes.channels, sizes.blocks, 3});
  const Tensor mean = Tensor::empty({sizes.channels}), scale = Tensor::empty({sizes.channels});
  HWY_DYNAMIC_DISPATCH(block_moments)(sizes, raw<float>(x), raw<float>(found));
  const float* block = raw<float>(found);
  const auto all = static_cast<double>(sizes.values());
  for (int64_t channel = 0; channel < sizes.channels; ++channel) {
    double count = 0, middle = 0, squares = 0;
    for (int64_t first = 0; first < sizes.images; first += sizes.images_per_block, block += 3) {
      // Chan, Golub and LeVeque 1979: joins the moments of two sets.
      const auto more = static_cast<double>(std::min(sizes.images_per_block, sizes.images - first) * sizes.pixels);
      const double distance = block[1] / more, apart = block[0] + distance - middle;
      squares += block[2] - distance * block[1] + apart * apart * count * more / (count + more);
      middle += apart * more / (count + more);
      count += more;
    }
    raw<float>(mean)[channel] = static_cast<float>(middle);
    raw<float>(scale)[channel] = inverse_root(squares / all, state.eps);
    const auto follow = [&](const Tensor& running, double now) {
      if (!running.defined()) return;
      float& value = raw<float>(running)[channel];
      value = static_cast<float>((1 - static_cast<double>(state.momentum)) * value + static_cast<double>(state.momentum) * now);
    };
    follow(state.running_mean, middle);
    follow(state.running_variance, squares / (all - 1));
  }
  return {mean, scale};
}

Moments running_moments(const BatchNorm& state) {
  const Tensor mean = Tensor::empty(state.running_mean.shape()), scale = Tensor::empty(mean.shape());
  copy_into(state.running_mean, mean);  // a copy: training may move them before the gradient comes
  for (int64_t channel = 0; channel < mean.count(); ++channel)
    raw<float>(scale)[channel] = inverse_root(raw<float>(state.running_variance)[channel], state.eps);
  return {mean, scale};
}

// x, g: (B, C, ...), w: (C) -> {dx, dw, db}
Grads gradients(const BatchSizes& sizes, const Tensor& x, const Tensor& g, const Tensor& w, const Moments& moments, bool training,
                bool to_x) {
  const Shape per_channel{sizes.channels};
  const Tensor found = Tensor::empty({sizes.channels, sizes.blocks, 2}), dw = Tensor::empty(per_channel), db = Tensor::empty(per_channel);
  const Tensor factor = Tensor::empty(per_channel), shift = Tensor::empty(per_channel), slope = Tensor::empty(per_channel);
  HWY_DYNAMIC_DISPATCH(block_gradients)(sizes, raw<float>(x), raw<float>(moments.mean), raw<float>(g), raw<float>(found));
  const float* block = raw<float>(found);
  for (int64_t channel = 0; channel < sizes.channels; ++channel) {
    double total = 0, product = 0;
    for (int64_t i = 0; i < sizes.blocks; ++i, block += 2) total += block[0], product += block[1];
    const double scale = raw<float>(moments.scale)[channel], share = training ? 1 / static_cast<double>(sizes.values()) : 0;
    raw<float>(db)[channel] = static_cast<float>(total);
    raw<float>(dw)[channel] = static_cast<float>(product * scale);
    // The mean and the variance of a batch move with x; running ones do not.
    raw<float>(factor)[channel] = static_cast<float>(raw<float>(w)[channel] * scale);
    raw<float>(shift)[channel] = static_cast<float>(total * share);
    raw<float>(slope)[channel] = static_cast<float>(product * scale * scale * share);
  }
  Tensor dx;
  if (to_x) {
    dx = Tensor::empty(x.shape(), DType::f32, x.device());
    HWY_DYNAMIC_DISPATCH(input_gradient)
    (sizes, raw<float>(x), raw<float>(g), raw<float>(moments.mean), raw<float>(factor), raw<float>(shift), raw<float>(slope),
     raw<float>(dx));
  }
  return {dx, dw, db};
}

void check_inputs(const Tensor& x, const Tensor& w, const Tensor& b, const BatchNorm& state) {
  check(x.rank() >= 2, "batch_norm: x has shape ", x.shape(), ", expected (B, C, ...)");
  const int64_t channels = x.size(1);
  check(w.shape() == Shape{channels}, "batch_norm: the weight has shape ", w.shape(), ", x ", channels, " channels");
  check(b.shape() == Shape{channels}, "batch_norm: the bias has shape ", b.shape(), ", x ", channels, " channels");
  for (const Tensor* running : {&state.running_mean, &state.running_variance}) {
    if (!running->defined()) {
      check(state.training, "batch_norm: evaluation needs the running mean and variance");
      continue;
    }
    check(running->shape() == Shape{channels}, "batch_norm: the running statistics have shape ", running->shape(), ", x ", channels,
          " channels");
    check(running->dtype() == DType::f32 && running->is_contiguous(), "batch_norm: the running statistics are ",
          running->is_contiguous() ? "dense " : "strided ", name_of(running->dtype()), ", expected dense f32");
  }
  if (!state.training) return;
  const int64_t values = x.size(0) * (x.count() / std::max<int64_t>(1, x.size(0) * channels));
  check(values > 1, "batch_norm: ", values, " values in a channel, training needs 2 or more");
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const BatchNorm& state) {
  if (is_half(input) || is_half(weight) || is_half(bias))
    return in_f32(input, [&](const Tensor& wide) { return batch_norm(wide, widen(weight), widen(bias), state); });
  const Tensor w = dense_f32("batch_norm", weight), b = dense_f32("batch_norm", bias), given = dense_f32("batch_norm", input);
  check_inputs(given, w, b, state);
  const bool transpose = must_transpose(given);
  const Tensor x = transpose ? transposed(given) : given;
  const BatchSizes sizes = sizes_of(x);
  const Moments moments = state.training ? batch_moments(sizes, x, state) : running_moments(state);
  const Tensor factor = Tensor::empty(w.shape()), y = Tensor::empty(x.shape(), DType::f32, x.device());
  for (int64_t channel = 0; channel < sizes.channels; ++channel)
    raw<float>(factor)[channel] = raw<float>(w)[channel] * raw<float>(moments.scale)[channel];
  HWY_DYNAMIC_DISPATCH(normalise)(sizes, raw<float>(x), raw<float>(moments.mean), raw<float>(factor), raw<float>(b), raw<float>(y));

  const auto back = [x, w, moments, sizes, transpose, shape = given.shape(), training = state.training,
                     to_x = input.needs_grad()](const Tensor& gradient) {
    Grads grads = gradients(sizes, x, transpose ? transposed(gradient) : contiguous(gradient), w, moments, training, to_x);
    if (transpose && to_x) grads[0] = transposed_back(grads[0], shape);
    return grads;
  };
  return record(op::batch_norm, transpose ? transposed_back(y, given.shape()) : y, {input, weight, bias}, back);
}

}  // namespace heed
#endif
