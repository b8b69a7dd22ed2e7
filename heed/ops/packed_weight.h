// The weight of a linear layer laid out once for the machine, for products without gradients: in panels of floats, or as
// bytes with one scale per row. Rows of x are then rounded to bytes as well: quantize_rows.h.
#pragma once

#include <memory>

#include "heed/ops/ops.h"

namespace heed {

enum class WeightForm { panels, bytes };

class PackedWeight {
 public:
  // parts: weights (O_i, I) of one or several layers with the same input, packed one below the other.
  PackedWeight(const Tensors& parts, WeightForm form);
  ~PackedWeight();

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  int64_t bytes() const;  // of memory

  // x: (..., I), bias: (O) or undefined -> activation(x w^T + bias): (..., O)
  Tensor operator()(const Tensor& x, const Tensor& bias, Activation activation = Activation::none) const;

 private:
  class Bytes;

  int64_t inputs_ = 0, outputs_ = 0;
  Tensor panels_ = {};
  std::unique_ptr<Bytes> bytes_;
};

}  // namespace heed
