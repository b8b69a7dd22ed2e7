#include "heed/io/elements.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "heed/core/copy.h"

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian, and their bytes are used as they are");

constexpr int64_t kChunk = int64_t{4} << 20;  // bytes

// Copies in chunks and releases the copied pages, so that the data is never in memory twice.
std::shared_ptr<int64_t[]> aligned_copy(const MappedFile& file, int64_t begin, int64_t bytes) {
  std::shared_ptr<int64_t[]> out(new int64_t[static_cast<size_t>(bytes / 8 + 1)]);
  for (int64_t done = 0; done < bytes; done += kChunk) {
    const int64_t chunk = std::min(kChunk, bytes - done);
    std::memcpy(reinterpret_cast<std::byte*>(out.get()) + done, file.data() + begin + done, static_cast<size_t>(chunk));
    file.release(begin + done, chunk);
  }
  return out;
}

}  // namespace

int64_t checked_bytes_of(const std::string& what, const Shape& shape, DType dtype) {
  try {
    return checked_multiply(count(shape), static_cast<int64_t>(bytes_of(dtype)));
  } catch (const Error&) {
    fail<FileError>(what, ": found shape ", shape, " of ", name_of(dtype), ", expected sizes that memory can hold");
  }
}

Tensor elements_at(const std::shared_ptr<const MappedFile>& file, const std::string& what, int64_t begin, const Shape& shape, DType dtype) {
  const int64_t bytes = checked_bytes_of(what, shape, dtype);
  const std::string_view stored = file->text(begin, bytes);
  if (dtype == DType::boolean) {
    const auto odd = std::find_if(stored.begin(), stored.end(), [](char byte) { return byte != 0 && byte != 1; });
    check<FileError>(odd == stored.end(), what, ": found a boolean that is neither 0 nor 1 at element ", odd - stored.begin(),
                     ", expected 0 or 1; the file is damaged");
  }
  std::byte* data = file->data() + begin;
  if (reinterpret_cast<uintptr_t>(data) % bytes_of(dtype) == 0) return Tensor::borrow(file, data, shape, dtype);
  const std::shared_ptr<int64_t[]> copy = aligned_copy(*file, begin, bytes);
  return Tensor::borrow(copy, reinterpret_cast<std::byte*>(copy.get()), shape, dtype);
}

void each_byte_chunk(const Tensor& tensor, const std::function<void(std::span<const std::byte> bytes)>& take) {
  const Tensor dense = contiguous(tensor);
  const auto width = static_cast<int64_t>(bytes_of(tensor.dtype()));
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(kChunk, tensor.count() * width)));
  for (int64_t done = 0; done < tensor.count(); done += kChunk / width) {
    const int64_t chunk = std::min(kChunk / width, tensor.count() - done);
    const std::span<std::byte> filled(buffer.data(), static_cast<size_t>(chunk * width));
    dense.view({chunk}, {1}, done).copy_to_host(filled, tensor.dtype());
    take(filled);
  }
}

void write_elements(FileWriter& out, const Tensor& tensor) {
  each_byte_chunk(tensor, [&](std::span<const std::byte> bytes) { out.write(bytes); });
}

}  // namespace heed
