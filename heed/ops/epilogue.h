// The last step of a matrix product, on a tile of f32 sums: bias, activation, and rounding to the type of the result.
#pragma once

#include "heed/core/dtype.h"
#include "heed/ops/activation.h"

namespace heed {

// z = sums + bias; y = activation(z)
struct EpilogueTile {
  const float* sums;  // (rows, columns)
  int64_t sums_stride;
  void *z, *y;  // (rows, columns); z: null if it is not needed. Both may be `sums`
  int64_t stride;
  const float* bias;  // (columns) or null
  Activation activation;
  int64_t rows, columns;
  DType dtype = DType::f32;  // of z and y: f32 or bf16
};
void apply_epilogue(const EpilogueTile& tile);

}  // namespace heed
