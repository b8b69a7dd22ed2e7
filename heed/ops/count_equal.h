// How many elements of two tensors of whole numbers are equal: the correct predictions of a batch, counted where they are.
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
