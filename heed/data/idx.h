// IDX, the file format of MNIST and its descendants: a short header with the sizes of the axes, then the elements.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "heed/core/tensor.h"

namespace heed {

// The tensor of bytes (u8) in an IDX file, plain or packed by gzip. A file that is damaged, cut short, too long or of another
// element type is a FileError.
Tensor read_idx(const std::string& path);

// The same from the bytes of such a file; `name` is for messages.
Tensor parse_idx(std::span<const std::byte> file, const std::string& name);

}  // namespace heed
