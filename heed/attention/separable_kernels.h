// Arguments of the separable attention kernels (separable.h). Read by g++ and nvcc.
#pragma once

#include <algorithm>

#include "heed/core/kernel.h"

namespace heed {

struct SeparableSizes {
  int64_t B, H, G, Y, R, X, C;  // as in separable.h
  int64_t E, width;             // of values, and padded as padded_width() says

  // Value columns of a task: wide enough to be read well, narrow enough for the second cache, and tasks for all threads.
  int64_t slice() const {
    const int64_t wanted = std::max((width + 255) / 256, (16 + B * G - 1) / std::max<int64_t>(B * G, 1));
    return std::max<int64_t>(16, (width / std::max<int64_t>(wanted, 1) + 15) / 16 * 16);
  }
  int64_t slices() const { return (width + slice() - 1) / slice(); }

  int64_t joined_rows() const { return B * H * Y * C * width; }  // values joined by rows, of all heads

  int64_t multiply_adds(int64_t row_products, int64_t column_products) const {
    return B * H * E * Y * C * (row_products * R + column_products * X);
  }
};

struct SeparableForward {
  SeparableSizes sizes;
  const float *rows, *columns;  // (H, Y, R), (H, X, C)
  const float* v;               // (B G, R C, width)
  float* out;                   // (B H, Y X, width)
  void* workspace = nullptr;    // on GPUs: values joined by rows, (B H, Y, C, width)

  int64_t multiply_adds() const { return sizes.multiply_adds(1, 1); }  // values are joined by rows, then by columns
  int64_t workspace_bytes(Device device) const {
    return device.kind == Device::Kind::cpu ? 0 : sizes.joined_rows() * static_cast<int64_t>(sizeof(float));
  }
};
HEED_KERNEL(separable_forward, SeparableForward);

struct SeparableBackward {
  SeparableSizes sizes;
  const float *rows, *columns;  // (H, Y, R), (H, X, C)
  const float *v, *g;           // (B G, R C, width), (B H, Y X, width)
  float* dv;                    // (B G, R C, width)
  float *drows, *dcolumns;      // (slices, B H, Y, R), (slices, B H, X, C): to be summed over slices and items
  void* workspace = nullptr;    // on GPUs: values joined by rows, and their gradient

  int64_t multiply_adds() const { return sizes.multiply_adds(3, 2); }  // the first product once more
  int64_t workspace_bytes(Device device) const {
    return device.kind == Device::Kind::cpu ? 0 : 2 * sizes.joined_rows() * static_cast<int64_t>(sizeof(float));
  }
};
HEED_KERNEL(separable_backward, SeparableBackward);

}  // namespace heed
