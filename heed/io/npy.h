// NumPy .npy files: reads versions 1.0 to 3.0, writes 1.0.
#pragma once

#include <memory>

#include "heed/core/tensor.h"
#include "heed/io/file.h"

namespace heed {

// The tensor borrows the mapped file. A Fortran-order array is returned as a strided view, without a copy.
Tensor read_npy(const Path& path);
Tensor parse_npy(const std::shared_ptr<const MappedFile>& file);

void write_npy(const Path& path, const Tensor& tensor);  // row-major, atomically; bf16 must be cast first

}  // namespace heed
