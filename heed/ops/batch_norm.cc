// Batch normalisation (Ioffe and Szegedy 2015). Every channel is cut into blocks of images; a block is read from memory
// once, and the results of the blocks are combined in double, from the first to the last.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/batch_norm.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <cmath>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/batch_shards.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

#ifndef HEED_OPS_BATCH_NORM_CC_
#define HEED_OPS_BATCH_NORM_CC_
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

namespace {

// Without pixels the channels are columns: transposed, so that the values of a channel are adjacent.
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
  const int64_t images = x.size(0), channels = x.size(1);
  return {.images = images, .channels = channels, .pixels = x.count() / std::max<int64_t>(1, images * channels)};
}

// What the gradient needs of a batch norm.
struct Normalised {
  Tensor x, w, mean, rstd;  // x: (images, channels, ...), w, mean, rstd: (channels)
  bool training;
};

// The sums of dw and db over all shards of a batch.
struct ShardGradients {
  Tensor dw, db;   // (channels)
  int64_t values;  // of a channel, in all shards
};

// g: as x -> {dx or nothing, dw, db}. all: not null: only dx is computed
Grads gradients(const Normalised& n, const Tensor& g, bool to_x, const ShardGradients* all = nullptr) {
  const Device device = n.x.device();
  Grads grads(3);
  if (to_x) grads[0] = Tensor::empty(n.x.shape(), n.x.dtype(), device);
  if (!all) grads[1] = Tensor::empty(n.w.shape(), device), grads[2] = Tensor::empty(n.w.shape(), device);
  launch(batch_norm_backward, device,
         {.x = Raw::bytes(n.x),
          .g = Raw::bytes(g),
          .weight = raw<float>(n.w),
          .mean = raw<float>(n.mean),
          .rstd = raw<float>(n.rstd),
          .dx = Raw::bytes_or_null(grads[0]),
          .dw = raw_or_null<float>(grads[1]),
          .db = raw_or_null<float>(grads[2]),
          .sizes = sizes_of(n.x),
          .dtype = n.x.dtype(),
          .training = n.training,
          .all_dw = all ? raw<float>(all->dw) : nullptr,
          .all_db = all ? raw<float>(all->db) : nullptr,
          .all_values = all ? all->values : 0});
  return grads;
}

Tensor channels_from(const std::vector<double>& values, Device device) {
  return Tensor::from(std::vector<float>(values.begin(), values.end()), {std::ssize(values)}, device);
}

// The same for a shard: dw and db are those of the shard, and dx depends on the sums over all shards. values: of a channel, in all shards
Grads shard_gradients(const Normalised& n, const Tensor& g, bool to_x, BatchShards& shards, int64_t values) {
  Grads grads = gradients(n, g, false);
  if (!to_x) return grads;
  const auto C = static_cast<size_t>(n.w.count());
  std::vector<double> own;  // dw, db
  for (const size_t i : {1, 2})
    for (const float value : grads[i].to_vector<float>()) own.push_back(value);
  std::vector<double> dw(C), db(C);
  for (const std::vector<double>& shard : shards.all_of(own))
    for (size_t c = 0; c < C; ++c) dw[c] += shard[c], db[c] += shard[C + c];
  const ShardGradients all{channels_from(dw, n.x.device()), channels_from(db, n.x.device()), values};
  grads[0] = gradients(n, g, true, &all)[0];
  return grads;
}

void check_values(int64_t values) { check(values > 1, "batch_norm: ", values, " values in a channel, training needs 2 or more"); }

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
  if (!state.training || ShardScope::newest()) return;
  check_values(x.size(0) * (x.count() / std::max<int64_t>(1, x.size(0) * channels)));
}

// y may be undefined.
void normalise_batch(const Normalised& n, const Tensor& b, const BatchNorm& state, const Tensor& y) {
  launch(batch_norm_forward, n.x.device(),
         {.x = Raw::bytes(n.x),
          .weight = raw<float>(n.w),
          .bias = raw<float>(b),
          .running_mean = raw_or_null<float>(state.running_mean),
          .running_variance = raw_or_null<float>(state.running_variance),
          .y = Raw::bytes_or_null(y),
          .mean = raw<float>(n.mean),
          .rstd = raw<float>(n.rstd),
          .sizes = sizes_of(n.x),
          .eps = state.eps,
          .momentum = state.momentum,
          .dtype = n.x.dtype(),
          .training = state.training});
}

void follow(const Tensor& running, const std::vector<double>& now, double momentum) {
  if (!running.defined()) return;
  std::vector<double> values;
  for (const double before : running.to_vector<float>()) values.push_back((1 - momentum) * before + momentum * now[values.size()]);
  copy_into(channels_from(values, running.device()), running);
}

// Normalises a shard by the mean and the variance of all shards. Returns the number of values of a channel in all of them.
int64_t normalise_shard(const Normalised& n, const Tensor& b, const BatchNorm& state, const Tensor& y, BatchShards& shards) {
  const auto C = static_cast<size_t>(n.w.count());
  normalise_batch(n, b, {.eps = 0}, {});  // rstd^-2 is the variance
  std::vector<double> own{static_cast<double>(sizes_of(n.x).values())};
  for (const float mean : n.mean.to_vector<float>()) own.push_back(mean);
  for (const double rstd : n.rstd.to_vector<float>()) own.push_back(1 / (rstd * rstd));
  double count = 0;
  std::vector<double> mean(C), variance(C);
  for (const std::vector<double>& shard : shards.all_of(own)) {
    const double more = shard[0];
    for (size_t c = 0; c < C; ++c) {  // Chan, Golub and LeVeque 1979; variance: times count
      const double apart = shard[1 + c] - mean[c];
      variance[c] += shard[1 + C + c] * more + apart * apart * count * more / (count + more);
      mean[c] += apart * more / (count + more);
    }
    count += more;
  }
  check_values(static_cast<int64_t>(count));
  std::vector<double> unbiased;
  for (double& each : variance) unbiased.push_back(each / (count - 1)), each /= count;
  if (shards.is_first_here()) {
    follow(state.running_mean, mean, state.momentum);
    follow(state.running_variance, unbiased, state.momentum);
  }
  const Device device = n.x.device();
  normalise_batch(n, b, {channels_from(mean, device), channels_from(variance, device), false, 0, state.eps}, y);
  return static_cast<int64_t>(count);
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const BatchNorm& state) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return batch_norm(wide, weight, bias, state); });
  if (is_half(weight) || is_half(bias)) return batch_norm(input, widen(weight), widen(bias), state);
  const Tensor w = dense_f32("batch_norm", weight), b = dense_f32("batch_norm", bias), dense = dense_storage("batch_norm", input);
  check_inputs(dense, w, b, state);
  const Device device = common_device("batch_norm", {&dense, &w, &b, &state.running_mean, &state.running_variance});
  const bool transpose = must_transpose(dense);
  const Tensor x = transpose ? transposed(dense) : dense, y = Tensor::empty(x.shape(), x.dtype(), device);
  const Normalised n{.x = x,
                     .w = w,
                     .mean = Tensor::empty(w.shape(), DType::f32, device),
                     .rstd = Tensor::empty(w.shape(), DType::f32, device),
                     .training = state.training};
  BatchShards* const shards = state.training ? ShardScope::newest() : nullptr;
  int64_t values = 0;
  if (shards)
    values = normalise_shard(n, b, state, y, *shards);
  else
    normalise_batch(n, b, state, y);

  const auto back = [n, transpose, shape = dense.shape(), to_x = input.needs_grad(), shards, values](const Tensor& gradient) {
    const Tensor g = transpose ? transposed(gradient) : contiguous(gradient);
    Grads grads = shards ? shard_gradients(n, g, to_x, *shards, values) : gradients(n, g, to_x);
    if (transpose && to_x) grads[0] = transposed_back(grads[0], shape);
    return grads;
  };
  return record(op::batch_norm, transpose ? transposed_back(y, dense.shape()) : y, {input, weight, bias}, back);
}

}  // namespace heed
#endif
