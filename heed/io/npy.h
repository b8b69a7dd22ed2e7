// One array in a NumPy .npy file: versions 1.0 to 3.0 are read, 1.0 is written.
#pragma once

#include <memory>

#include "heed/core/tensor.h"
#include "heed/io/file.h"

namespace heed {

// The tensor borrows the mapped file. An array in Fortran order comes as a view with its strides, without a copy.
Tensor read_npy(const Path& path);
Tensor parse_npy(const std::shared_ptr<const MappedFile>& file);

void write_npy(const Path& path, const Tensor& tensor);  // row-major, whole or not at all; bf16 must be cast first

}  // namespace heed
