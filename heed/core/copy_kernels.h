// Arguments of the kernels that fill, copy and add elements.
#pragma once

#include <cstdint>

#include "heed/core/api.h"
#include "heed/core/dtype.h"
#include "heed/core/kernel.h"

namespace HEED_API heed {

struct Fill {
  void* to;
  int64_t count;
  double value;
  DType dtype;
};
HEED_KERNEL(fill_elements, Fill);

// A copy between two layouts, with conversion. Axes that are adjacent in both are merged; the outermost axis comes first.
struct StridedCopy {
  const void* from;
  void* to;
  DType from_dtype, to_dtype;
  int rank = 0;
  int64_t size[8] = {}, from_stride[8] = {}, to_stride[8] = {};  // in elements
};
HEED_KERNEL(copy_elements, StridedCopy);

struct AddElements {  // sum += x
  void* sum;
  const void* x;
  int64_t count;
  DType dtype;  // of both: f32 or bf16
};
HEED_KERNEL(add_elements, AddElements);

// Bytes from one device to another, row-major on both.
struct Transfer {
  const void* from;
  void* to;
  int64_t bytes;
  Device from_device, to_device;
};
HEED_KERNEL(transfer_bytes, Transfer);

}  // namespace heed
