#include "heed/data/idx.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "heed/io/gzip_reader.h"

namespace heed {
namespace {

using Bytes = std::vector<std::byte>;

Shape read_header(GzipReader& in, const std::string& name) {
  std::array<std::byte, 4> magic{};
  check<FileError>(in.read(magic) == magic.size(), name, ": too short for an IDX file");
  check<FileError>(magic[0] == std::byte{0} && magic[1] == std::byte{0}, name, ": not an IDX file");
  const int type = std::to_integer<int>(magic[2]), rank = std::to_integer<int>(magic[3]);
  check<FileError>(type == 0x08, name, ": IDX element type ", type, ", expected 8 (bytes)");
  check<FileError>(rank >= 1 && rank <= kMaxRank, name, ": ", rank, " axes, expected 1 to ", kMaxRank);
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    std::array<std::byte, 4> size{};
    check<FileError>(in.read(size) == size.size(), name, ": the header is truncated");
    uint32_t value = 0;
    for (std::byte part : size) value = value << 8 | std::to_integer<uint32_t>(part);
    shape.push_back(value);
  }
  return shape;
}

}  // namespace

Tensor parse_idx(std::span<const std::byte> file, const std::string& name) {
  GzipReader in(file, name);
  const Shape shape = read_header(in, name);
  int64_t expected = 0;
  try {
    expected = count(shape);
  } catch (const Error&) {
    fail<FileError>(name, ": the sizes ", shape, " are too large");
  }
  // Checked before allocating: a small file must not claim a huge size.
  check<FileError>(expected <= in.bound(), name, ": ", file.size(), " bytes cannot hold the ", expected, " elements of ", shape);
  const auto elements = std::make_shared<Bytes>(static_cast<size_t>(expected));
  const size_t found = in.read(*elements);
  check<FileError>(found == elements->size(), name, ": ", found, " elements, expected ", expected);
  std::byte more{};
  check<FileError>(in.read({&more, 1}) == 0, name, ": found bytes after the last element");
  return Tensor::borrow(elements, elements->data(), shape, DType::u8);
}

Tensor read_idx(const std::string& path) {
  const auto file = MappedFile::open(path);
  return parse_idx({file->data(), static_cast<size_t>(file->size())}, path);
}

}  // namespace heed
