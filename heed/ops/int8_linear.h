// Arguments of the linear layer with int8 weights, and the weights.
#pragma once

#include "heed/core/kernel.h"
#include "heed/ops/activation.h"

namespace heed {

class Int8Weight;  // (O, I) with one scale per row, in the layout of the CPU

// The layout of CUDA.
struct Int8Rows {
  int8_t* bytes = nullptr;  // (O, stride), 0 past I
  float* scales = nullptr;  // (O)

  HEED_HOST_DEVICE static int64_t stride(int64_t I) { return (I + 63) / 64 * 64; }
};

struct Int8Linear {  // activation(x w^T + bias)
  const Int8Weight* weight;
  const float *x, *bias;  // (rows, I), (O) or null
  float* y;               // (rows, O)
  int64_t rows, I, O;
  Activation activation;
  Int8Rows packed = {};
  void* workspace = nullptr;  // CUDA: x as bytes and its scales, (rows, 2, stride) and (rows, 2)

  int64_t multiply_adds() const { return rows * I * O; }
  int64_t workspace_bytes(Device device) const {
    return device.kind == Device::Kind::cpu ? 0 : rows * 2 * (Int8Rows::stride(I) + static_cast<int64_t>(sizeof(float)));
  }
};
HEED_KERNEL(int8_linear, Int8Linear);

struct PackInt8 {
  Int8Weight* weight;
  const float* from;  // (O, I)
  int64_t I = 0, O = 0;
  Int8Rows packed = {};
};
HEED_KERNEL(pack_int8, PackInt8);

}  // namespace heed
