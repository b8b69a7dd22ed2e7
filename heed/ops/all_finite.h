// Whether all elements of a tensor are finite, in one pass.
#pragma once

#include "heed/core/api.h"
#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

struct FindNonfinite {
  const void* x;
  int64_t count;
  int32_t* found;  // (): 1 if an element is NaN or infinite, else 0
  DType dtype;     // f32 or bf16
};
HEED_KERNEL(find_nonfinite, FindNonfinite);

bool all_finite(const Tensor& x);

}  // namespace heed
