// A linear layer of few rows, as in decoding, in one kernel with what comes before and after it: out = factor y + residual with
// y = activation(norm(x) w^T + bias). Its time is that of reading w once. x and out are f32; w is f32, bf16 or int8.
#pragma once

#include "heed/core/api.h"
#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/core/tensor.h"
#include "heed/ops/activation.h"

namespace HEED_API heed {

// What does not change from call to call.
struct RowLayer {
  Tensor weight;                            // (O, S) f32, bf16, or u8: int8 with 0 past I. S: I, or more for int8
  Tensor scales = {};                       // (O) of int8 weights
  Tensor bias = {};                         // (O) or undefined
  Tensor norm_weight = {}, norm_bias = {};  // (I) or undefined: no norm; without norm_bias it is an RMS norm
  float eps = 0;
  Activation activation = Activation::none;
};

// Whether row_linear computes products of so many rows with that weight. weight: as in RowLayer
bool row_linear_supports(const Tensor& weight, int64_t rows, int64_t I);

// x: (rows, I), out: (rows, O), factor and residual: (rows, O) or undefined; they may be `out`.
void row_linear(const RowLayer& layer, const Tensor& x, const Tensor& out, const Tensor& factor = {}, const Tensor& residual = {});

struct RowLinear {
  static constexpr int64_t kMostRows = 8, kMostInputs = 24 * 1024;  // of all rows together: f32 in shared memory

  const float* x;
  const void* weight;
  const float *scales, *bias, *norm_weight, *norm_bias, *factor, *residual;
  float* out;
  int64_t rows, I, O, stride;  // stride: of a row of the weight
  float eps;
  Activation activation;
  DType dtype;  // of the weight

  int64_t multiply_adds() const { return rows * I * O; }
};
HEED_KERNEL(row_linear_forward, RowLinear);

}  // namespace heed
