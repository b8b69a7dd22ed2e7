// Linear layers with the same input as one matrix product.
#pragma once

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// x w_i^T + b_i for every layer i: the results (..., O_i) are windows of one tensor (..., sum of O_i). Empty if one product cannot compute
// them: on the CPU, for f32, or if the bf16 copies of the weights are not adjacent in memory (adjoin_bf16_copies).
// x: (..., I), weights: (O_i, I), biases: (O_i) each, or all undefined
Tensors linear_parts(const Tensor& x, const Tensors& weights, const Tensors& biases);

}  // namespace heed
