// Copies between layouts, dtypes and devices.
#pragma once

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

void copy_into(const Tensor& from, const Tensor& to);  // same shape; any strides, dtypes and devices
void transfer(const Tensor& from, const Tensor& to);   // bytes from one device to another; both dense and of one dtype
Tensor contiguous(const Tensor& x);                    // x itself (detached) if it is dense already
Tensor converted(const Tensor& x, DType dtype);        // detached; the op with a gradient is cast()
void accumulate(Tensor& sum, const Tensor& g);         // sum += g, in place if sum is not shared

}  // namespace heed
