// For gradients that come from elsewhere, such as sums over several processes.
#pragma once

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

void set_gradient(const Tensor& leaf, Tensor gradient);  // replaces the gradient of a leaf; undefined: none

}  // namespace heed
