// Arguments of the kernel that selects between two tensors by a mask.
#pragma once

#include "heed/core/kernel.h"
#include "heed/core/shape.h"

namespace heed {

// y = condition ? a : b. Operands are read through their broadcast strides, merged, outermost axis first; y is dense. Copies bytes, for any
// dtype.
struct Choose {
  static constexpr int kOperands = 3;

  const bool* condition;
  const void *a, *b;
  void* y;
  int64_t element_bytes;
  int rank = 0;
  int64_t size[kMaxRank] = {}, stride[kMaxRank][kOperands] = {};  // of the condition, a and b
};
HEED_KERNEL(choose_forward, Choose);

}  // namespace heed
