// The weight of a linear layer in the layout that the device multiplies fastest, for inference: as floats, or as int8 with one scale per
// row. With int8 weights, rows of x are quantized as well (quantize_rows.h).
#pragma once

#include <memory>

#include "heed/core/api.h"
#include "heed/ops/ops.h"

namespace HEED_API heed {

class Int8Weight;
struct Int8Rows;

// f32 in panels as the matrix product reads them, or int8.
enum class WeightForm { panels, bytes };

// A weight (O, I), packed once and used by many calls.
class PackedWeight {
 public:
  // parts: weights (O_i, I) of one or several layers with the same input, one below the other.
  PackedWeight(const Tensors& parts, WeightForm form);
  ~PackedWeight();

  // Where it is, I and O.
  Device device() const { return device_; }
  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  int64_t bytes() const;  // of memory

  // For kernels that read rows of weights (row_linear.h): (O, I) in that precision, or (O, S) bytes of int8 with scales() (O). Undefined on
  // the CPU, where weights are in panels.
  Tensor rows(DType precision) const;
  const Tensor& scales() const { return scales_; }

  // x: (..., I), bias: (O) or undefined -> activation(x w^T + bias): (..., O)
  Tensor operator()(const Tensor& x, const Tensor& bias, Activation activation = Activation::none) const;

 private:
  Int8Rows int8_rows() const;

  Device device_ = {};
  int64_t inputs_ = 0, outputs_ = 0;
  Tensor weight_ = {}, packed_ = {};  // (O, I) if the device has no packed layout
  std::unique_ptr<Int8Weight> int8_;  // bytes on the CPU
  Tensor scales_ = {};                // (O): packed_ has bytes for CUDA
};

}  // namespace heed
