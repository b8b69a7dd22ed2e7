// Arguments of the kernels for arithmetic on two tensors and for scaling one.
#pragma once

#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/core/shape.h"

namespace heed {

enum class Arithmetic : uint8_t { add, subtract, multiply, divide };

// out = a op b with broadcasting. Adjacent axes are merged where the strides of both operands allow it, outermost first; along the
// innermost axis each operand is dense or a single repeated number, and out is dense.
struct BinaryForward {
  Arithmetic what;
  const void *a, *b;
  void* out;
  DType dtype;
  int rank = 0;
  int64_t size[kMaxRank] = {}, a_stride[kMaxRank] = {}, b_stride[kMaxRank] = {};
};
HEED_KERNEL(binary_forward, BinaryForward);

struct ScaleForward {  // out = factor x + shift
  const void* x;
  void* out;
  int64_t count;
  float factor, shift;
  DType dtype;
};
HEED_KERNEL(scale_forward, ScaleForward);

}  // namespace heed
