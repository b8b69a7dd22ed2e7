// The elements of tensors, row-major, on their way out of files and into them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "heed/core/tensor.h"
#include "heed/io/file.h"

namespace heed {

// The bytes that a tensor fills. `what` names the file and the tensor in the error that a shape too large gives.
int64_t bytes_filled(const std::string& what, const Shape& shape, DType dtype);

// The tensor whose elements begin at a byte of a file. It borrows them where they are aligned for the dtype, else copies
// them. Booleans are looked at, as any byte but 0 and 1 would be undefined behaviour; no other element is touched.
Tensor elements_at(const std::shared_ptr<const MappedFile>& file, const std::string& what, int64_t begin, const Shape& shape, DType dtype);

// Piece by piece through a small buffer on the host, whatever the layout and the device of the tensor.
void each_piece(const Tensor& tensor, const std::function<void(std::span<const std::byte> bytes)>& take);
void write_elements(FileWriter& out, const Tensor& tensor);

}  // namespace heed
