// The last step of linear layers, for kernels: linear.cc.
#pragma once

#include "heed/ops/ops.h"

namespace heed {

// z += bias; y = activation(z). z and y: (rows, columns) with rows `stride` apart; they may be the same memory. bias: (columns)
// or null
void apply_epilogue(float* z, float* y, int64_t stride, const float* bias, Activation activation, int64_t rows, int64_t columns);

}  // namespace heed
