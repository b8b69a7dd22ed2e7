// Convolutions in CUDA as products whose operands are read where they are (implicit im2col), in f32. A 1 x 1 convolution is a product of
// matrices in memory. Gradients of weights are partial sums, added in a fixed order.
#include "heed/ops/conv.h"

#include "heed/cuda/block_reduce.cuh"
#include "heed/ops/conv_scratch.h"
#include "heed/ops/f32_tiles.cuh"
#include "heed/ops/gemm.h"

namespace heed::cuda {
namespace {

constexpr int kThreads = 256;

// Division of 0 <= n < 2^31 by a number known before the launch: n / d = (high half of n m + n) >> s (Granlund and Montgomery 1994).
struct Divisor {
  uint32_t number, factor, shift;

  explicit Divisor(int64_t d) : number(static_cast<uint32_t>(d)), shift(0) {
    while ((uint64_t{1} << shift) < number) ++shift;
    factor = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - number) / number + 1);
  }
  __device__ int divide(int n) const {
    return static_cast<int>((__umulhi(static_cast<uint32_t>(n), factor) + static_cast<uint32_t>(n)) >> shift);
  }
  // n becomes the remainder.
  __device__ int split(int& n) const {
    const int quotient = divide(n);
    n -= quotient * static_cast<int>(number);
    return quotient;
  }
};

// What kernels know of a convolution. Numbers that count pixels of a batch or channels times taps are below 2^31 (check_sizes).
struct Geometry {
  int64_t in, out, in_each, out_each;  // channels, and those of a group
  int64_t pixels, places;
  int height, width, out_height, out_width, stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
  Divisor by_pixels, by_width, by_places, by_out_width, by_taps, by_kernel_width, by_stride_y, by_stride_x;

  explicit Geometry(const ConvSizes& s)
      : in(s.in),
        out(s.out),
        in_each(s.in / s.groups),
        out_each(s.out / s.groups),
        pixels(s.window.pixels()),
        places(s.window.out_pixels()),
        height(static_cast<int>(s.window.image[0])),
        width(static_cast<int>(s.window.image[1])),
        out_height(static_cast<int>(s.window.places[0])),
        out_width(static_cast<int>(s.window.places[1])),
        stride_y(static_cast<int>(s.window.stride[0])),
        stride_x(static_cast<int>(s.window.stride[1])),
        padding_y(static_cast<int>(s.window.padding[0])),
        padding_x(static_cast<int>(s.window.padding[1])),
        dilation_y(static_cast<int>(s.window.dilation[0])),
        dilation_x(static_cast<int>(s.window.dilation[1])),
        by_pixels(pixels),
        by_width(width),
        by_places(places),
        by_out_width(out_width),
        by_taps(s.window.taps()),
        by_kernel_width(s.window.kernel[1]),
        by_stride_y(stride_y),
        by_stride_x(stride_x) {}
};

// A channel and a place in the window: y = dy, x = dx before padding and stride.
struct Tap {
  int64_t channel;  // elements before the channel's plane
  int dy, dx;
};
__device__ Tap tap_of(const Geometry& s, int index, int64_t plane) {
  const int64_t channel = s.by_taps.split(index) * plane;
  const int ky = s.by_kernel_width.split(index);
  return {channel, ky * s.dilation_y, index * s.dilation_x};
}

// An image and a place: the window's first pixel, or a pixel of the image plus the padding.
struct Spot {
  int64_t image;  // elements before the image's plane of the group's first channel; -1: there is none
  int y, x;
};

// x at the taps of the window whose first pixel is a spot.
__device__ float pixel_at(const Geometry& s, const float* x, const Spot& spot, const Tap& tap) {
  const int row = spot.y + tap.dy, column = spot.x + tap.dx;
  const bool inside = spot.image >= 0 && static_cast<unsigned>(row) < static_cast<unsigned>(s.height) &&
                      static_cast<unsigned>(column) < static_cast<unsigned>(s.width);
  return inside ? x[spot.image + tap.channel + int64_t{row} * s.width + column] : 0;
}

// index: of a place in the images from `first` on
__device__ Spot window_spot(const Geometry& s, int index, int64_t first, int64_t group) {
  const int64_t image = first + s.by_places.split(index);
  const int row = s.by_out_width.split(index);
  return {(image * s.in + group * s.in_each) * s.pixels, row * s.stride_y - s.padding_y, index * s.stride_x - s.padding_x};
}

// A matrix in memory, (lines, K) dense.
struct DenseRows {
  static constexpr bool kAlongK = true;
  using Line = int64_t;
  const float* data;
  int64_t lines, K;

  __device__ Line line(int64_t i) const { return i < lines ? i * K : -1; }
  __device__ int64_t depth(int64_t k) const { return k; }
  __device__ float load(Line line, int64_t k) const { return line >= 0 ? data[line + k] : 0; }
};

// Planes of an image-like tensor (B, channels, plane): a column n is an element of a plane of some image, a row m a channel of a group.
struct PlaneOutput {
  float* to;  // the group's first channel in the first image
  const float* bias;
  int64_t image, plane;  // elements of an image and of a plane
  Divisor by_plane;

  __device__ int64_t column(int64_t n) const {
    int rest = static_cast<int>(n);
    const int64_t before = by_plane.split(rest) * image;
    return before + rest;
  }
  __device__ void store(int64_t m, int64_t at, float sum) const { to[at + m * plane] = bias ? sum + bias[m] : sum; }
};

struct ForwardProblem {  // y (out, images x places) = w (out, in x taps) windows (in x taps, images x places)
  using Left = DenseRows;
  struct Right {
    static constexpr bool kAlongK = false;
    using Line = Spot;
    const Geometry& s;
    const float* x;
    int64_t group, count;

    __device__ Line line(int64_t i) const { return i < count ? window_spot(s, static_cast<int>(i), 0, group) : Spot{-1, 0, 0}; }
    __device__ Tap depth(int64_t k) const { return tap_of(s, static_cast<int>(k), s.pixels); }
    __device__ float load(const Line& line, const Tap& tap) const { return pixel_at(s, x, line, tap); }
  };
  Geometry s;
  const float *x, *w, *bias;
  float* y;
  int64_t K, count;

  __device__ Left left(int64_t group) const { return {w + group * s.out_each * K, s.out_each, K}; }
  __device__ Right right(int64_t group) const { return {s, x, group, count}; }
  __device__ PlaneOutput output(int64_t, int64_t group) const {
    return {y + group * s.out_each * s.places, bias ? bias + group * s.out_each : nullptr, s.out * s.places, s.places, s.by_places};
  }
};

struct InputProblem {  // dx (in, images x pixels) = w^T (in, out x taps) g (out x taps, images x pixels)
  struct Left {
    static constexpr bool kAlongK = true;
    using Line = int64_t;
    const Geometry& s;
    const float* w;

    __device__ Line line(int64_t i) const { return i < s.in_each ? i * s.by_taps.number : -1; }
    __device__ int64_t depth(int64_t k) const {
      int tap = static_cast<int>(k);
      const int64_t output = s.by_taps.split(tap);
      return output * s.in_each * s.by_taps.number + tap;
    }
    __device__ float load(Line line, int64_t depth) const { return line >= 0 ? w[line + depth] : 0; }
  };
  struct Right {
    static constexpr bool kAlongK = false;
    using Line = Spot;
    const Geometry& s;
    const float* g;
    int64_t group, count;

    __device__ Line line(int64_t i) const {
      if (i >= count) return {-1, 0, 0};
      int index = static_cast<int>(i);
      const int64_t image = s.by_pixels.split(index);
      const int row = s.by_width.split(index);
      return {(image * s.out + group * s.out_each) * s.places, row + s.padding_y, index + s.padding_x};
    }
    __device__ Tap depth(int64_t k) const { return tap_of(s, static_cast<int>(k), s.places); }
    // The window that has this pixel under this tap, if there is one: its place times the stride is what is left.
    __device__ float load(const Line& line, const Tap& tap) const {
      const int y = line.y - tap.dy, x = line.x - tap.dx;
      if (line.image < 0 || y < 0 || x < 0) return 0;
      const int row = s.by_stride_y.divide(y), column = s.by_stride_x.divide(x);
      const bool there = row * s.stride_y == y && column * s.stride_x == x && row < s.out_height && column < s.out_width;
      return there ? g[line.image + tap.channel + int64_t{row} * s.out_width + column] : 0;
    }
  };
  Geometry s;
  const float *g, *w;
  float* dx;
  int64_t count;

  __device__ Left left(int64_t group) const { return {s, w + group * s.out_each * s.in_each * s.by_taps.number}; }
  __device__ Right right(int64_t group) const { return {s, g, group, count}; }
  __device__ PlaneOutput output(int64_t, int64_t group) const {
    return {dx + group * s.in_each * s.pixels, nullptr, s.in * s.pixels, s.pixels, s.by_pixels};
  }
};

struct WeightProblem {  // dw (out, in x taps) = g (out, images x places) windows^T (images x places, in x taps)
  // An image and a place in it; there may be more places than an int counts.
  __device__ static int64_t image_of(const Geometry& s, int64_t k, int& place) {
    if (k <= INT32_MAX) {
      place = static_cast<int>(k);
      return s.by_places.split(place);
    }
    const int64_t image = k / s.places;
    place = static_cast<int>(k - image * s.places);
    return image;
  }
  struct Left {
    static constexpr bool kAlongK = true;
    using Line = int64_t;
    const Geometry& s;
    const float* g;
    int64_t group;

    __device__ Line line(int64_t i) const { return i < s.out_each ? i * s.places : -1; }
    __device__ int64_t depth(int64_t k) const {
      int place;
      const int64_t image = image_of(s, k, place);
      return (image * s.out + group * s.out_each) * s.places + place;
    }
    __device__ float load(Line line, int64_t depth) const { return line >= 0 ? g[line + depth] : 0; }
  };
  struct Right {
    static constexpr bool kAlongK = true;
    using Line = Tap;
    const Geometry& s;
    const float* x;
    int64_t group, count;

    __device__ Line line(int64_t i) const { return i < count ? tap_of(s, static_cast<int>(i), s.pixels) : Tap{0, INT32_MIN / 2, 0}; }
    __device__ Spot depth(int64_t k) const {
      int place;
      const int64_t image = image_of(s, k, place);
      return window_spot(s, place, image, group);
    }
    __device__ float load(const Line& line, const Spot& spot) const { return pixel_at(s, x, spot, line); }
  };
  struct Output {
    float* to;
    int64_t columns;
    __device__ int64_t column(int64_t n) const { return n; }
    __device__ void store(int64_t m, int64_t n, float sum) const { to[m * columns + n] = sum; }
  };
  Geometry s;
  const float *x, *g;
  float* dw;  // or parts of it
  int64_t count, weights;

  __device__ Left left(int64_t group) const { return {s, g, group}; }
  __device__ Right right(int64_t group) const { return {s, x, group, count}; }
  __device__ Output output(int64_t part, int64_t group) const { return {dw + part * weights + group * s.out_each * count, count}; }
};

// db or parts of it: a block sums one channel of some images. (slices, out)
__global__ void __launch_bounds__(kThreads) bias_kernel(const float* g, int64_t B, int64_t out, int64_t places, int64_t images, float* to) {
  __shared__ float scratch[32];
  const int64_t channel = blockIdx.x, slice = blockIdx.y, begin = slice * images, end = begin + images < B ? begin + images : B;
  float sum = 0;
  if (places >= kThreads) {
    for (int64_t image = begin; image < end; ++image)
      for (int64_t i = threadIdx.x; i < places; i += kThreads) sum += g[(image * out + channel) * places + i];
  } else {
    const int together = kThreads / static_cast<int>(places), mine = threadIdx.x / static_cast<int>(places);
    for (int64_t image = begin + mine; image < end && mine < together; image += together)
      sum += g[(image * out + channel) * places + threadIdx.x % static_cast<int>(places)];
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) to[slice * out + channel] = sum;
}

// to = the sum of the parts, from the first to the last. parts: (count, size)
__global__ void __launch_bounds__(kThreads) join_kernel(const float* parts, int64_t count, int64_t size, float* to) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < size; i += int64_t{gridDim.x} * kThreads) {
    float sum = 0;
#pragma unroll 8
    for (int64_t part = 0; part < count; ++part) sum += parts[part * size + i];
    to[i] = sum;
  }
}

void check_sizes(const ConvSizes& s) {
  constexpr int64_t most = INT32_MAX;
  const int64_t padded = std::max(s.window.image[0] + 2 * s.window.padding[0], s.window.image[1] + 2 * s.window.padding[1]);
  check(s.window.pixels() <= most / 2 && s.window.out_pixels() <= most / 2 && padded <= most / 4 &&
            std::max(s.in, s.out) / s.groups * s.window.taps() <= most,
        "conv2d: images of ", s.window.image[0], " x ", s.window.image[1], " with ", s.in, " channels are too large for CUDA");
}

// So many images at a time that their pixels are counted in 31 bits.
int64_t images_at_once(const ConvSizes& s) {
  return std::max<int64_t>(1, (int64_t{1} << 30) / std::max(s.window.pixels(), s.window.out_pixels()));
}

// Whether y[image] = w x[image], with matrices in memory.
bool is_product(const ConvSizes& s) {
  const Window2d& o = s.window;
  constexpr int64_t worth = 64;  // pixels; with fewer, products of single images are too small
  return o.taps() == 1 && o.stride[0] == 1 && o.stride[1] == 1 && o.padding[0] == 0 && o.padding[1] == 0 && o.pixels() >= worth &&
         s.out / s.groups > 8 && s.in / s.groups > 8;
}

// to[image] = w from[image], or w^T from[image]; w: (out, in) of each group
void multiply_images(const ConvSizes& s, const float* w, bool transposed, const float* from, float* to) {
  const int64_t in = s.in / s.groups, out = s.out / s.groups, pixels = s.window.pixels();
  const int64_t M = transposed ? in : out, K = transposed ? out : in;
  Gemm g{.M = M,
         .N = pixels,
         .K = K,
         .a = {.data = const_cast<float*>(w), .stride = in, .transposed = transposed, .batch_stride = {0, out * in}},
         .b = {.data = const_cast<float*>(from), .stride = pixels, .batch_stride = {s.groups * K * pixels, K * pixels}},
         .c = {.data = to, .stride = pixels, .batch_stride = {s.groups * M * pixels, M * pixels}},
         .batch_axes = 2,
         .batch_size = {s.B, s.groups}};
  gemm(g);
}

}  // namespace

void conv_forward(const ConvForward& args) {
  const ConvSizes& s = args.sizes;
  if (s.B == 0) return;
  if (is_product(s) && !args.b) return multiply_images(s, args.w, false, args.x, args.y);
  check_sizes(s);
  const int64_t K = s.in / s.groups * s.window.taps(), step = images_at_once(s);
  for (int64_t first = 0; first < s.B; first += step) {
    const int64_t count = std::min(step, s.B - first) * s.window.out_pixels();
    run_f32_tiles(ForwardProblem{.s = Geometry(s),
                                 .x = args.x + first * s.in * s.window.pixels(),
                                 .w = args.w,
                                 .bias = args.b,
                                 .y = args.y + first * s.out * s.window.out_pixels(),
                                 .K = K,
                                 .count = count},
                  plan_tiles(s.groups, s.out / s.groups, count, K));
  }
}

void conv_backward_input(const ConvBackwardInput& args) {
  const ConvSizes& s = args.sizes;
  if (s.B == 0) return;
  if (is_product(s)) return multiply_images(s, args.w, true, args.g, args.dx);
  check_sizes(s);
  const int64_t step = images_at_once(s);
  for (int64_t first = 0; first < s.B; first += step) {
    const int64_t count = std::min(step, s.B - first) * s.window.pixels();
    run_f32_tiles(InputProblem{.s = Geometry(s),
                               .g = args.g + first * s.out * s.window.out_pixels(),
                               .w = args.w,
                               .dx = args.dx + first * s.in * s.window.pixels(),
                               .count = count},
                  plan_tiles(s.groups, s.in / s.groups, count, s.out / s.groups * s.window.taps()));
  }
}

void conv_backward_weight(const ConvBackwardWeight& args) {
  const ConvSizes& s = args.sizes;
  if (s.B == 0) {
    check_cuda(cudaMemsetAsync(args.dw, 0, static_cast<size_t>(s.weights()) * sizeof(float), stream()), "conv2d");
    check_cuda(cudaMemsetAsync(args.db, 0, static_cast<size_t>(s.out) * sizeof(float), stream()), "conv2d");
    return;
  }
  check_sizes(s);
  const ConvWeightScratch scratch = conv_weight_scratch(s);
  auto *const parts = static_cast<float*>(args.workspace), *const bias_parts = parts + scratch.weight_floats(s);
  const bool cut = scratch.plan.parts > 1, sliced = scratch.slices > 1;
  run_f32_tiles(
      WeightProblem{
          .s = Geometry(s), .x = args.x, .g = args.g, .dw = cut ? parts : args.dw, .count = scratch.plan.N, .weights = s.weights()},
      scratch.plan);
  const auto join = [](const float* from, int64_t count, int64_t size, float* to) {
    start(join_kernel, block_count(size, kThreads), kThreads, 0, from, count, size, to);
  };
  if (cut) join(parts, scratch.plan.parts, s.weights(), args.dw);
  start(bias_kernel, dim3(static_cast<unsigned>(s.out), static_cast<unsigned>(scratch.slices)), kThreads, 0, args.g, s.B, s.out,
        s.window.out_pixels(), divide_up(s.B, scratch.slices), sliced ? bias_parts : args.db);
  if (sliced) join(bias_parts, scratch.slices, s.out, args.db);
}

}  // namespace heed::cuda
