// One of oneDNN's convolutions, on one thread, between row-major tensors. oneDNN chooses its own layouts; they are a
// third faster than row-major ones, although the pictures are reordered on the way in and out.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "heed/ops/ops.h"
#include "heed/ops/window.h"

namespace heed {

enum class ConvPass { forward, data, weights };  // forward, gradient of x, gradient of w and b

// x: (B, in, picture), w: (out, in / groups, kernel), y: (B, out, places)
struct ConvSizes {
  int64_t in, out;
  Pair picture, kernel, places;
  Conv2d options;

  int64_t pixels() const { return picture[0] * picture[1]; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t out_pixels() const { return places[0] * places[1]; }
  int64_t weights() const { return out * (in / options.groups) * taps(); }
  int64_t multiply_adds(int64_t images) const { return images * out_pixels() * weights(); }  // taps on padding too
};

class ConvPrimitive {
 public:
  // Some images and some channels of a whole convolution. Made inside a task: oneDNN asks how many threads it may use.
  // oneDNN keeps what it compiled, so the second of the same kind takes 2 us instead of 250.
  ConvPrimitive(ConvPass pass, const ConvSizes& whole, int64_t images, int64_t in, int64_t out, bool bias);

  // The layout of weights that the primitive works on, and how many floats they take there.
  const dnnl::memory::desc& packing() const { return weights_.inside; }
  int64_t packed_count() const { return static_cast<int64_t>(packing().get_size() / sizeof(float)); }
  void pack(float* weights, float* packed) const;
  void unpack(float* packed, float* weights) const;

  // Reads what the pass needs and writes the rest. Weights are in `packing`, the others point into the whole row-major
  // tensors; bias may be null. Many tasks may run one primitive at the same time.
  void run(float* x, float* packed, const dnnl::memory::desc& packing, float* bias, float* y) const;

 private:
  struct Layout {
    dnnl::memory::desc outside, inside;  // as our tensors have it, as the primitive has it
  };

  ConvPass pass_;
  Layout x_, weights_, y_;
  dnnl::memory::desc bias_, scratch_;
  dnnl::primitive primitive_;
};

}  // namespace heed
