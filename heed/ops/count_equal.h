// Counts the equal elements of two integer tensors, on their device: the correct predictions of a batch.
#pragma once

#include "heed/core/api.h"
#include "heed/core/kernel.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

Tensor count_equal(const Tensor& a, const Tensor& b);  // i64, of one shape -> () f32

struct CountEqual {
  const int64_t *a, *b;
  int64_t count;
  float* equal;  // ()
};
HEED_KERNEL(count_equal_elements, CountEqual);

}  // namespace heed
