// Cross-entropy of rows of logits, shared by ops: targets, class weights and sums, on the device of the targets.
#pragma once

#include "heed/ops/ops.h"

namespace heed {

struct EntropyRows {
  // Checks options and targets. targets: any shape, integers
  EntropyRows(const char* op, const Tensor& targets, int64_t C, const CrossEntropy& options);

  // Costs and log-sum-exp of rows [begin, end), whose logits are x: (end - begin, C).
  void forward(const void* x, DType dtype, int64_t begin, int64_t end) const;
  // dx: (end - begin, C), which may be x; g: the gradient of the loss, or null: 1
  void backward(const void* x, const float* g, void* dx, DType dtype, int64_t begin, int64_t end) const;
  Tensor loss() const;  // the mean over the targets that are not ignored: ()

  Device device;
  int64_t rows, C, ignore_index;
  float smoothing;
  Tensor targets{}, weights{};      // (rows) i64, (C) or undefined
  Tensor lse{}, costs{}, totals{};  // (rows), (rows), the bytes of EntropyTotals
};

}  // namespace heed
