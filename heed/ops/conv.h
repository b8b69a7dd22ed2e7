// Arguments of the convolution kernels: x: (B, in, image), w: (out, in / groups, kernel), b: (out), y: (B, out, places); all f32.
#pragma once

#include "heed/core/kernel.h"
#include "heed/ops/window.h"

namespace heed {

struct ConvSizes {
  int64_t B, in, out, groups;
  Window2d window;

  HEED_HOST_DEVICE int64_t weights() const { return out * (in / groups) * window.taps(); }
  HEED_HOST_DEVICE int64_t multiply_adds() const { return B * window.out_pixels() * weights(); }  // taps on padding too
};

struct ConvForward {
  const float *x, *w, *b;  // b may be null
  float* y;
  ConvSizes sizes;

  int64_t multiply_adds() const { return sizes.multiply_adds(); }
};
HEED_KERNEL(conv_forward, ConvForward);

struct ConvBackwardInput {
  const float *g, *w;  // g: the gradient of y
  float* dx;
  ConvSizes sizes;

  int64_t multiply_adds() const { return sizes.multiply_adds(); }
};
HEED_KERNEL(conv_backward_input, ConvBackwardInput);

struct ConvBackwardWeight {
  const float *x, *g;  // g: the gradient of y
  float *dw, *db;
  ConvSizes sizes;
  void* workspace = nullptr;  // CUDA: partial sums (conv_scratch.h)

  int64_t multiply_adds() const { return sizes.multiply_adds(); }
  int64_t workspace_bytes(Device device) const;  // none on the CPU
};
HEED_KERNEL(conv_backward_weight, ConvBackwardWeight);

}  // namespace heed
