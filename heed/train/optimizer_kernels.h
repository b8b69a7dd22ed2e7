// Arguments of the optimizers' kernels. Each works on a list of dense f32 tensors at once; the lists are in host memory.
#pragma once

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"

namespace heed {

struct StepTensor {  // a parameter with its gradient and the optimizer's state
  float *w, *g, *first, *second;
  int64_t count;
  float decay;
  Bf16* copy = nullptr;  // of w (core/bf16_copy.h), written with it; null: none
};

// The scale of gradients is limit / norm if norm > limit, else 1; a step does nothing if the norm is not finite.
struct StepClipping {
  const float* norm;  // in the memory of the device; null: no clipping
  float limit;
};

// Numbers that change from step to step, in the memory of the device: a captured step reads their current values. If there are none, and on
// the CPU, those in the arguments are used.
struct StepNumbers {
  float rate, first_correction, second_correction;
  float average_share;
};

struct SgdStep {
  const StepTensor* tensors;  // first: the velocity, or null without momentum
  int64_t tensor_count;
  StepClipping clipping;
  float rate, momentum;
  bool nesterov;
  const StepNumbers* numbers = nullptr;
};
HEED_KERNEL(sgd_step, SgdStep);

struct AdamStep {
  const StepTensor* tensors;  // first, second: the moments
  int64_t tensor_count;
  StepClipping clipping;
  float rate, beta1, beta2, eps, first_correction, second_correction;  // corrections: 1 / (1 - beta^t)
  bool decoupled;
  const StepNumbers* numbers = nullptr;
};
HEED_KERNEL(adam_step, AdamStep);

// The Euclidean norm over all gradients: sums of squares of pieces, added in double from the first piece to the last.
struct GradientNorm {
  static constexpr int64_t kPiece = 1 << 14;

  const StepTensor* tensors;
  int64_t tensor_count;
  float* norm;  // ()
  void* workspace = nullptr;

  int64_t pieces() const {
    int64_t found = 0;
    for (int64_t i = 0; i < tensor_count; ++i) found += (tensors[i].count + kPiece - 1) / kPiece;
    return found;
  }
  int64_t workspace_bytes(Device) const { return pieces() * static_cast<int64_t>(sizeof(double)); }
};
HEED_KERNEL(compute_gradient_norm, GradientNorm);

struct ScaleGradients {  // g *= scale of the clipping
  const StepTensor* tensors;
  int64_t tensor_count;
  StepClipping clipping;
};
HEED_KERNEL(scale_gradients, ScaleGradients);

struct AverageTensor {
  float* average;
  const float* w;
  int64_t count;
};

struct MoveAverages {  // average += share (w - average)
  const AverageTensor* tensors;
  int64_t tensor_count;
  const float* norm;  // in the memory of the device, or null; if it is not finite, nothing changes
  float share;
  const StepNumbers* numbers = nullptr;
};
HEED_KERNEL(move_averages, MoveAverages);

struct SwapElements {
  float *a, *b;
  int64_t count;
};
HEED_KERNEL(swap_elements, SwapElements);

}  // namespace heed
