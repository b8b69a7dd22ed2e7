// Batch normalisation (Ioffe and Szegedy 2015). One CUDA block works on each block of images of a channel; a warp joins what the blocks of
// a channel found, in double and in a fixed order.
#include "heed/cuda/row.cuh"
#include "heed/ops/batch_norm.h"

namespace heed::cuda {
namespace {

constexpr unsigned kThreads = 256, kJoinThreads = 128;  // four channels in a block that joins

// Where the elements of a CUDA block are: images [first, first + images) of a channel.
struct Place {
  int64_t channel, start, between;  // the first element, and from an image to the next
  int64_t images, pixels;

  __device__ Place(const BatchSizes& sizes, int64_t per_block, int64_t blocks) {
    const int64_t first = blockIdx.x % blocks * per_block;
    channel = blockIdx.x / blocks;
    start = (first * sizes.channels + channel) * sizes.pixels;
    between = sizes.channels * sizes.pixels;
    images = sizes.images - first < per_block ? sizes.images - first : per_block;
    pixels = sizes.pixels;
  }

  // body(offset, Count<n>()) for every element, or for every pack where planes consist of whole aligned ones.
  template <class T, class Body>
  __device__ void for_pixels(bool packed, const Body& body) const {
    if (packed) {
      each<Pack<T>::kCount>(body);
    } else {
      each<1>(body);
    }
  }
  template <int n, class Body>
  __device__ void each(const Body& body) const {
    const int64_t units = pixels / n;
    if (units >= blockDim.x) {  // long planes one after the other
      for (int64_t image = 0; image < images; ++image)
#pragma unroll 4
        for (int64_t i = threadIdx.x; i < units; i += blockDim.x) body(start + image * between + i * n, Count<n>());
    } else {  // short planes side by side: at most 2^13 elements
      const unsigned all = static_cast<unsigned>(images * units), per_plane = static_cast<unsigned>(units);
#pragma unroll 4
      for (unsigned i = threadIdx.x; i < all; i += blockDim.x)
        body(start + int64_t{i / per_plane} * between + int64_t{i % per_plane} * n, Count<n>());
    }
  }
};

// What every kernel that reads pixels gets: the blocks of images, and whether packs fit.
struct Cut {
  BatchSizes sizes;
  int64_t per_block, blocks;
  bool packed;
};
template <class T, class... Pointers>
Cut cut(const BatchSizes& sizes, Pointers... pointers) {
  return {sizes, sizes.images_per_block(), sizes.blocks(), sizes.pixels % Pack<T>::kCount == 0 && (is_aligned(pointers) && ...)};
}
unsigned block_count_of(const Cut& cut) { return static_cast<unsigned>(cut.sizes.channels * cut.blocks); }

// Of every block: approximately the mean, the sum of distances from that, and the sum of their squares. found: (C, blocks, 3)
template <class T>
__global__ void __launch_bounds__(kThreads) block_moments(Cut cut, const T* x, float* found) {
  __shared__ float scratch[32];
  const Place place(cut.sizes, cut.per_block, cut.blocks);
  float total = 0;
  place.template for_pixels<T>(cut.packed, [&](int64_t i, auto n) {
    const auto value = load_some<n.value>(x + i);
#pragma unroll
    for (float v : value.values) total += v;
  });
  const float mean = block_sum(total, scratch) / static_cast<float>(place.images * place.pixels);
  float distances = 0, squares = 0;
  place.template for_pixels<T>(cut.packed, [&](int64_t i, auto n) {
    const auto value = load_some<n.value>(x + i);
#pragma unroll
    for (float v : value.values) {
      distances += v - mean;
      squares = fmaf(v - mean, v - mean, squares);
    }
  });
  distances = block_sum(distances, scratch);
  squares = block_sum(squares, scratch);
  if (threadIdx.x > 0) return;
  float* const to = found + int64_t{blockIdx.x} * 3;
  to[0] = mean;
  to[1] = distances;
  to[2] = squares;
}

__device__ float inverse_root(double variance, float eps) { return static_cast<float>(1 / sqrt(variance + static_cast<double>(eps))); }

// A warp for each channel: its mean and variance, from those of the blocks (Chan, Golub and LeVeque 1979), and the factor weight rstd.
// found: (C, blocks, 3), factor: (C)
__global__ void __launch_bounds__(kJoinThreads) join_moments(BatchNormForward n, Cut cut, const float* found, float* factor) {
  const int64_t channel = (int64_t{blockIdx.x} * kJoinThreads + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (channel >= cut.sizes.channels) return;
  const float* const block = found + channel * cut.blocks * 3;
  const auto values_of = [&](int64_t i) {
    const int64_t rest = cut.sizes.images - i * cut.per_block;
    return static_cast<double>((rest < cut.per_block ? rest : cut.per_block) * cut.sizes.pixels);
  };
  const auto all = static_cast<double>(cut.sizes.images * cut.sizes.pixels);
  double total = 0, squares = 0;
  for (int64_t i = lane; i < cut.blocks; i += 32) total += block[3 * i] * values_of(i) + block[3 * i + 1];
  const double middle = warp_sum(total) / all;
  for (int64_t i = lane; i < cut.blocks; i += 32) {
    const double here = values_of(i), distance = block[3 * i + 1] / here, apart = block[3 * i] + distance - middle;
    squares += block[3 * i + 2] - distance * block[3 * i + 1] + apart * apart * here;
  }
  squares = warp_sum(squares);
  if (lane > 0) return;
  const float rstd = inverse_root(squares / all, n.eps);
  n.mean[channel] = static_cast<float>(middle);
  n.rstd[channel] = rstd;
  factor[channel] = n.weight[channel] * rstd;
  const auto follow = [&](float* running, double now) {
    if (running == nullptr) return;
    const auto momentum = static_cast<double>(n.momentum);
    running[channel] = static_cast<float>((1 - momentum) * running[channel] + momentum * now);
  };
  follow(n.running_mean, middle);
  follow(n.running_variance, squares / (all - 1));
}

// A thread for each channel.
__global__ void running_moments(BatchNormForward n, float* factor) {
  const int64_t channel = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (channel >= n.sizes.channels) return;
  const float rstd = inverse_root(n.running_variance[channel], n.eps);
  n.mean[channel] = n.running_mean[channel];
  n.rstd[channel] = rstd;
  factor[channel] = n.weight[channel] * rstd;
}

// y = (x - mean) factor + bias; factor: (C)
template <class T>
__global__ void __launch_bounds__(kThreads)
    normalise(Cut cut, const T* x, T* y, const float* means, const float* factor, const float* bias) {
  const Place place(cut.sizes, cut.per_block, cut.blocks);
  const float mean = means[place.channel], scale = factor[place.channel], offset = bias[place.channel];
  place.template for_pixels<T>(cut.packed, [&](int64_t i, auto n) {
    auto value = load_some<n.value>(x + i);
#pragma unroll
    for (float& v : value.values) v = fmaf(v - mean, scale, offset);
    store_some(y + i, value);
  });
}

// Of every block: the sums of g and of g (x - mean). found: (C, blocks, 2)
template <class T>
__global__ void __launch_bounds__(kThreads) block_gradients(Cut cut, const T* x, const T* g, const float* means, float* found) {
  __shared__ float scratch[32];
  const Place place(cut.sizes, cut.per_block, cut.blocks);
  const float mean = means[place.channel];
  float total = 0, product = 0;
  place.template for_pixels<T>(cut.packed, [&](int64_t i, auto n) {
    const auto value = load_some<n.value>(x + i), gradient = load_some<n.value>(g + i);
#pragma unroll
    for (int k = 0; k < n.value; ++k) {
      total += gradient.values[k];
      product = fmaf(gradient.values[k], value.values[k] - mean, product);
    }
  });
  total = block_sum(total, scratch);
  product = block_sum(product, scratch);
  if (threadIdx.x > 0) return;
  found[int64_t{blockIdx.x} * 2] = total;
  found[int64_t{blockIdx.x} * 2 + 1] = product;
}

// A warp for each channel: dw, db and the numbers of the input's gradient. found: (C, blocks, 2); factor, shift, slope: (C)
__global__ void __launch_bounds__(kJoinThreads)
    join_gradients(BatchNormBackward n, Cut cut, const float* found, float* factor, float* shift, float* slope) {
  const int64_t channel = (int64_t{blockIdx.x} * kJoinThreads + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (channel >= cut.sizes.channels) return;
  const float* const block = found + channel * cut.blocks * 2;
  const double rstd = n.rstd[channel];
  double total = 0, product = 0;
  if (n.all_dw) {
    total = n.all_db[channel];
    product = n.all_dw[channel] / rstd;
  } else {
    for (int64_t i = lane; i < cut.blocks; i += 32) {
      total += block[2 * i];
      product += block[2 * i + 1];
    }
    total = warp_sum(total);
    product = warp_sum(product);
  }
  if (lane > 0) return;
  const int64_t values = n.all_dw ? n.all_values : cut.sizes.images * cut.sizes.pixels;
  const double share = n.training ? 1 / static_cast<double>(values) : 0;
  if (!n.all_dw) {
    n.db[channel] = static_cast<float>(total);
    n.dw[channel] = static_cast<float>(product * rstd);
  }
  // The mean and the variance of a batch depend on x; running ones do not.
  factor[channel] = static_cast<float>(n.weight[channel] * rstd);
  shift[channel] = static_cast<float>(total * share);
  slope[channel] = static_cast<float>(product * rstd * rstd * share);
}

// dx = factor (g - shift - slope (x - mean)); factor, shift, slope: (C)
template <class T>
__global__ void __launch_bounds__(kThreads) input_gradient(Cut cut, const T* x, const T* g, T* dx, const float* means, const float* factor,
                                                           const float* shift, const float* slope) {
  const Place place(cut.sizes, cut.per_block, cut.blocks);
  const float mean = means[place.channel], scale = factor[place.channel], offset = shift[place.channel], incline = slope[place.channel];
  place.template for_pixels<T>(cut.packed, [&](int64_t i, auto n) {
    const auto value = load_some<n.value>(x + i);
    auto gradient = load_some<n.value>(g + i);
#pragma unroll
    for (int k = 0; k < n.value; ++k) gradient.values[k] = scale * (gradient.values[k] - offset - incline * (value.values[k] - mean));
    store_some(dx + i, gradient);
  });
}

}  // namespace

void batch_norm_forward(const BatchNormForward& n) {
  if (n.sizes.channels == 0) return;
  const int64_t channels = n.sizes.channels;
  float *const factor = static_cast<float*>(n.workspace), *const found = factor + channels;  // (C), (C, blocks, 3)
  with_storage(n.dtype, [&]<class T>(T) {
    const T* const x = static_cast<const T*>(n.x);
    T* const y = static_cast<T*>(n.y);
    const Cut pieces = cut<T>(n.sizes, x, y);
    const bool empty = n.sizes.values() == 0;
    if (n.training) {
      if (!empty) start(block_moments<T>, block_count_of(pieces), kThreads, 0, pieces, x, found);
      start(join_moments, static_cast<unsigned>(divide_up<int64_t>(channels * 32, kJoinThreads)), kJoinThreads, 0, n, pieces, found,
            factor);
    } else {
      start(running_moments, static_cast<unsigned>(divide_up<int64_t>(channels, kJoinThreads)), kJoinThreads, 0, n, factor);
    }
    if (!empty && y) start(normalise<T>, block_count_of(pieces), kThreads, 0, pieces, x, y, n.mean, factor, n.bias);
  });
}

void batch_norm_backward(const BatchNormBackward& n) {
  if (n.sizes.channels == 0) return;
  const int64_t channels = n.sizes.channels, blocks = n.sizes.blocks();
  float* const found = static_cast<float*>(n.workspace);  // (C, blocks, 2), then three of (C)
  float *const factor = found + channels * blocks * 2, *const shift = factor + channels, *const slope = shift + channels;
  with_storage(n.dtype, [&]<class T>(T) {
    const T *const x = static_cast<const T*>(n.x), *const g = static_cast<const T*>(n.g);
    T* const dx = static_cast<T*>(n.dx);
    const Cut pieces = cut<T>(n.sizes, x, g, dx);
    const bool empty = n.sizes.values() == 0;
    Cut join = pieces;
    if (empty) join.blocks = 0;
    if (!empty && !n.all_dw) start(block_gradients<T>, block_count_of(pieces), kThreads, 0, pieces, x, g, n.mean, found);
    start(join_gradients, static_cast<unsigned>(divide_up<int64_t>(channels * 32, kJoinThreads)), kJoinThreads, 0, n, join, found, factor,
          shift, slope);
    if (dx && !empty) start(input_gradient<T>, block_count_of(pieces), kThreads, 0, pieces, x, g, dx, n.mean, factor, shift, slope);
  });
}

}  // namespace heed::cuda
