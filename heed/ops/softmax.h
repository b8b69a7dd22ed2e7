// Arguments of the softmax kernels, over rows of `width` elements.
#pragma once

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"

namespace heed {

struct SoftmaxForward {
  const void* x;  // (rows, width)
  void* y;        // (rows, width)
  int64_t rows, width;
  DType dtype;
  bool log;  // the logarithm of the softmax
};
HEED_KERNEL(softmax_forward, SoftmaxForward);

struct SoftmaxBackward {
  const void *y, *g;  // (rows, width)
  void* dx;           // (rows, width)
  int64_t rows, width;
  DType dtype;
  bool log;
};
HEED_KERNEL(softmax_backward, SoftmaxBackward);

}  // namespace heed
