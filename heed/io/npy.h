// NumPy .npy files, version 1.0.
#pragma once

#include "heed/core/tensor.h"
#include "heed/io/file.h"

namespace heed {

void write_npy(const Path& path, const Tensor& tensor);  // row-major, atomically; bf16 must be cast first

}  // namespace heed
