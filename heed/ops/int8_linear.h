// Arguments of the linear layer with int8 weights, and the weights.
#pragma once

#include "heed/core/kernel.h"
#include "heed/ops/activation.h"

namespace heed {

class Int8Weight;  // (O, I) with one scale per row, in the layout of the device

struct Int8Linear {  // activation(x w^T + bias)
  const Int8Weight* weight;
  const float *x, *bias;  // (rows, I), (O) or null
  float* y;               // (rows, O)
  int64_t rows, I, O;
  Activation activation;

  int64_t multiply_adds() const { return rows * I * O; }
};
HEED_KERNEL(int8_linear, Int8Linear);

struct PackInt8 {
  Int8Weight* weight;
  const float* from;  // (O, I)
};
HEED_KERNEL(pack_int8, PackInt8);

}  // namespace heed
