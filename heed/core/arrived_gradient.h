// For functions that compute gradients (the `back` of record), while backward() runs them.
#pragma once

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// The sum of the gradients that other ops have computed for input number `input`, if it is dense and has no other owner. The caller adds
// its own gradient in place, for example by a product with Gemm::add, and returns the sum as its gradient. Undefined: nothing to add to.
Tensor take_arrived_gradient(size_t input, DType dtype);

// The gradients that the function returns do not overlap, though they may be parts of one tensor: leaves keep them without a copy.
void returns_separate_gradients();

}  // namespace heed
