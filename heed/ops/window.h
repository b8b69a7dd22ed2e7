// Sliding windows over images: their number of positions, checked. Used by convolution and pooling.
#pragma once

#include <array>
#include <cstdint>

#include "heed/core/check.h"
#include "heed/core/device.h"

namespace heed {

// Axis 0 is Y, axis 1 is X.
struct Window2d {
  int64_t image[2], kernel[2], stride[2], padding[2], dilation[2];
  int64_t places[2];  // of the window

  HEED_HOST_DEVICE int64_t pixels() const { return image[0] * image[1]; }
  HEED_HOST_DEVICE int64_t taps() const { return kernel[0] * kernel[1]; }
  HEED_HOST_DEVICE int64_t out_pixels() const { return places[0] * places[1]; }
};

using Pair = std::array<int64_t, 2>;  // along Y, along X

inline Window2d checked_window(const char* op, Pair image, Pair kernel, Pair stride, Pair padding, Pair dilation) {
  constexpr int64_t most = 1 << 20;  // larger than any real size, and no product or sum of such sizes overflows
  Window2d window{};
  for (size_t axis = 0; axis < 2; ++axis) {
    check(image[axis] >= 1, op, ": the image is ", image[0], " x ", image[1], ", expected 1 or more");
    check(kernel[axis] >= 1 && kernel[axis] <= most, op, ": the kernel is ", kernel[0], " x ", kernel[1], ", expected 1 to ", most);
    check(stride[axis] >= 1 && stride[axis] <= most, op, ": the stride is ", stride[0], " x ", stride[1], ", expected 1 to ", most);
    check(padding[axis] >= 0 && padding[axis] <= most, op, ": the padding is ", padding[0], " x ", padding[1], ", expected 0 to ", most);
    check(dilation[axis] >= 1 && dilation[axis] <= most, op, ": the dilation is ", dilation[0], " x ", dilation[1], ", expected 1 to ",
          most);
    const int64_t span = (kernel[axis] - 1) * dilation[axis] + 1, padded = image[axis] + 2 * padding[axis];
    check(span <= padded, op, ": the window spans ", span, " along ", axis == 0 ? "Y" : "X", ", the padded image ", padded);
    window.image[axis] = image[axis];
    window.kernel[axis] = kernel[axis];
    window.stride[axis] = stride[axis];
    window.padding[axis] = padding[axis];
    window.dilation[axis] = dilation[axis];
    window.places[axis] = (padded - span) / stride[axis] + 1;
  }
  return window;
}

}  // namespace heed
