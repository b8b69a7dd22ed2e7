// Arguments of the pooling kernels. A plane is one channel of one image: x: (planes, Y, X), y: (planes, OY, OX).
#pragma once

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/ops/window.h"

namespace heed {

struct MaxPoolForward {
  const void* x;
  void* y;
  int32_t* where;  // (planes, OY, OX): the pixel of its plane that is the maximum, the first of equal ones; or null
  int64_t planes;
  Window2d window;
  DType dtype;  // of x and y
};
HEED_KERNEL(max_pool_forward, MaxPoolForward);

struct MaxPoolBackward {
  const void* g;         // (planes, OY, OX)
  const int32_t* where;  // from the forward pass
  void* dx;              // (planes, Y, X)
  int64_t planes;
  Window2d window;
  DType dtype;  // of g and dx
};
HEED_KERNEL(max_pool_backward, MaxPoolBackward);

}  // namespace heed
