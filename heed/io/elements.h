// Reading and writing tensor elements, row-major.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "heed/core/api.h"
#include "heed/core/tensor.h"
#include "heed/io/file.h"

namespace HEED_API heed {

// The size of a tensor in bytes; overflow is a FileError. `what`: file and tensor, for error messages.
int64_t checked_bytes_of(const std::string& what, const Shape& shape, DType dtype);

// The tensor stored at byte `begin` of a file. Aligned data is borrowed, other data copied. Booleans are checked, because bytes other
// than 0 and 1 would be undefined behaviour; other elements are not touched.
Tensor elements_at(const std::shared_ptr<const MappedFile>& file, const std::string& what, int64_t begin, const Shape& shape, DType dtype);

// Passes the elements in chunks through a small host buffer, for any layout and device.
void each_byte_chunk(const Tensor& tensor, const std::function<void(std::span<const std::byte> bytes)>& take);
void write_elements(FileWriter& out, const Tensor& tensor);

}  // namespace heed
