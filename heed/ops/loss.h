// Arguments of the loss kernels. With p = softmax(x), w the class weights and s the smoothing, a row with target t costs
// (1 - s) w_t (-log p_t) + s / C sum_c w_c (-log p_c), and the mean divides by the sum of the w_t. Nothing is read back to the host: the
// sums that the gradient divides by stay on the device.
#pragma once

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"

namespace heed {

struct EntropyTotals {
  double counted;  // the sum of the weights of the targets that are not ignored
  double classes;  // the sum of the weights of all classes
};

// Fails if a target is not a class, or if all are ignored. On a GPU, where an error would make the host wait, the loss becomes NaN.
struct EntropySums {
  const int64_t* targets;  // (rows)
  const float* weights;    // (C), or null: all 1
  EntropyTotals* totals;
  int64_t rows, C, ignore_index;
};
HEED_KERNEL(entropy_sums, EntropySums);

struct EntropyForward {
  const void* x;           // (rows, C)
  const int64_t* targets;  // (rows)
  const float* weights;    // (C) or null
  float *costs, *lse;      // (rows): the cost, zero where the target is ignored; log(sum(exp(x)))
  int64_t rows, C, ignore_index;
  float smoothing;
  DType dtype;  // of x
};
HEED_KERNEL(entropy_forward, EntropyForward);

struct EntropyMean {  // loss = sum(costs) / totals.counted
  const float* costs;
  const EntropyTotals* totals;
  float* loss;
  int64_t rows;
};
HEED_KERNEL(entropy_mean, EntropyMean);

struct EntropyBackward {
  const void* x;
  const int64_t* targets;
  const float *weights, *lse;
  const EntropyTotals* totals;
  const float* g;  // (), the gradient of the loss, or null: 1
  void* dx;        // (rows, C), which may be x
  int64_t rows, C, ignore_index;
  float smoothing;
  DType dtype;  // of x and dx
};
HEED_KERNEL(entropy_backward, EntropyBackward);

struct SquaredErrorForward {  // loss = mean((a - b)^2)
  const void *a, *b;
  float* loss;
  int64_t count;
  DType dtype;
  void* workspace = nullptr;

  static constexpr int64_t kPiece = 1 << 13;  // elements per partial sum
  int64_t workspace_bytes(Device) const { return (count + kPiece - 1) / kPiece * static_cast<int64_t>(sizeof(double)); }
};
HEED_KERNEL(squared_error_forward, SquaredErrorForward);

struct SquaredErrorBackward {  // da = 2 g (a - b) / count
  const void *a, *b;
  const float* g;
  void* da;
  int64_t count;
  DType dtype;
};
HEED_KERNEL(squared_error_backward, SquaredErrorBackward);

struct ScaleInPlace {  // x *= factor; does nothing if the factor is 1
  void* x;
  const float* factor;
  int64_t count;
  DType dtype;  // of x
};
HEED_KERNEL(scale_in_place, ScaleInPlace);

}  // namespace heed
