// Arguments of the normalisation kernels: layer norm, optionally with a residual addition, and RMS norm, which has no bias and no mean.
#pragma once

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/core/parallel.h"

namespace heed {

struct NormForward {
  const void *x, *residual;    // (rows, D), (rows, D) or null
  const float *weight, *bias;  // (D), (D) or null
  void *sum, *y;               // x + residual or null, (rows, D)
  float *mean, *rstd;          // (rows); mean is null for rms norm, rstd = 1 / sqrt(variance + eps)
  int64_t rows, D;
  float eps;
  DType dtype;  // of x, residual, sum and y
  bool known;   // mean and rstd are inputs: y is recomputed, bit for bit
};
HEED_KERNEL(norm_forward, NormForward);

struct NormBackward {
  const void *x, *g, *g_sum;  // (rows, D); g_sum: the other gradient of x + residual, or null
  const float *weight, *mean, *rstd;
  void* dx;
  float *dw, *db;  // (D); db is null for rms norm
  int64_t rows, D;
  DType dtype;  // of x, g, g_sum and dx
  void* workspace = nullptr;

  // Sums for dw and db: of blocks of rows, then over the blocks.
  int64_t rows_per_block() const { return std::max<int64_t>({rows_per_task(D), (rows + 31) / 32, 1}); }
  int64_t blocks() const { return std::max<int64_t>((rows + rows_per_block() - 1) / rows_per_block(), 1); }

  // The same on a GPU, equal for all GPUs: as many blocks as an H200 runs at a time, but enough rows for each.
  int64_t cuda_blocks() const {
    const int64_t on_each = D <= 256 ? 4 : D <= 512 ? 3 : D <= kWarpRow ? 2 : D <= 2 * kWarpRow ? 4 : 2, least = D <= kWarpRow ? 32 : 2;
    return std::clamp<int64_t>((rows + least - 1) / least, 1, 132 * on_each);
  }
  static constexpr int64_t kWarpRow = 1024;  // the widest row for one warp

  int64_t workspace_bytes(Device device) const {  // (blocks, 2, D)
    return (device.kind == Device::Kind::cuda ? cuda_blocks() : blocks()) * 2 * D * static_cast<int64_t>(sizeof(float));
  }
};
HEED_KERNEL(norm_backward, NormBackward);

}  // namespace heed
