// Arguments of the batch norm kernels. x: (images, channels, pixels)
#pragma once

#include <algorithm>

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"

namespace heed {

// The images of a channel are split into blocks depending on the shape alone; moments and sums of blocks are combined in double, in order.
struct BatchSizes {
  int64_t images, channels, pixels;

  int64_t values() const { return images * pixels; }  // of a channel
  int64_t images_per_block() const {
    return std::clamp<int64_t>((1 << 13) / std::max<int64_t>(pixels, 1), 1, std::max<int64_t>(images, 1));
  }
  int64_t blocks() const { return (images + images_per_block() - 1) / images_per_block(); }
};

struct BatchNormForward {
  const void* x;
  const float *weight, *bias;              // (channels)
  float *running_mean, *running_variance;  // (channels): updated in training, where they may be null; inputs in evaluation
  void* y;                                 // or null: only the statistics are wanted
  float *mean, *rstd;                      // (channels), outputs: mean and scale of the normalisation; rstd = 1 / sqrt(variance + eps)
  BatchSizes sizes;
  float eps, momentum;
  DType dtype;  // of x and y
  bool training;
  void* workspace = nullptr;

  // (channels), then in training (channels, blocks, 3).
  int64_t workspace_bytes(Device) const {
    return sizes.channels * (1 + (training ? 3 * sizes.blocks() : 0)) * static_cast<int64_t>(sizeof(float));
  }
};
HEED_KERNEL(batch_norm_forward, BatchNormForward);

struct BatchNormBackward {
  const void *x, *g;
  const float *weight, *mean, *rstd;  // (channels)
  void* dx;                           // or null
  float *dw, *db;                     // (channels)
  BatchSizes sizes;
  DType dtype;    // of x, g and dx
  bool training;  // mean and rstd are functions of x
  // (channels): the sums of dw and db over several calls, whose x have `all_values` values in a channel; dw and db are then null.
  const float *all_dw = nullptr, *all_db = nullptr;
  int64_t all_values = 0;
  void* workspace = nullptr;

  // (channels, blocks, 2), then (3, channels).
  int64_t workspace_bytes(Device) const { return sizes.channels * (2 * sizes.blocks() + 3) * static_cast<int64_t>(sizeof(float)); }
};
HEED_KERNEL(batch_norm_backward, BatchNormBackward);

}  // namespace heed
