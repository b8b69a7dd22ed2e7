// Moving and converting elements between layouts.
#pragma once

#include "heed/core/tensor.h"

namespace heed {

void copy_into(const Tensor& from, const Tensor& to);  // same shape; any strides, any dtypes
Tensor contiguous(const Tensor& x);                    // x itself (without history) when it is dense already
Tensor converted(const Tensor& x, DType dtype);        // without history; the op with a gradient is cast()
void accumulate(Tensor& sum, const Tensor& g);         // sum += g, in place when nobody else holds sum

}  // namespace heed
