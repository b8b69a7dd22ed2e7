// IDX, the file format of MNIST and its successors: a header with the shape, then the elements.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// The u8 tensor of an IDX file, plain or gzip-compressed. Damaged or truncated files, trailing bytes and other element types are a
// FileError.
Tensor read_idx(const std::string& path);

// The same from memory; `name` is for error messages.
Tensor parse_idx(std::span<const std::byte> file, const std::string& name);

}  // namespace heed
