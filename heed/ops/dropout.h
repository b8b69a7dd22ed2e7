// Arguments of the dropout kernel, which its gradient uses too: the mask is a function of the key and the element's index.
#pragma once

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/core/philox.h"

namespace heed {

struct DropoutForward {
  const void* x;
  void* y;
  int64_t count;
  RandomKey key;
  uint32_t threshold;  // an element whose random word is below it becomes zero
  float scale;         // of the others
  DType dtype;
};
HEED_KERNEL(dropout_forward, DropoutForward);

}  // namespace heed
