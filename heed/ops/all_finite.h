// Whether a tensor holds neither NaN nor infinity, at the speed of reading it once.
#pragma once

#include "heed/core/tensor.h"

namespace heed {

bool all_finite(const Tensor& x);

}  // namespace heed
