// Any bytes as a .npy file: refused, or the whole array can be read.
#include "heed/io/npy.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  try {
    const Tensor tensor = parse_npy(MappedFile::in_memory("input", std::as_bytes(std::span(data, size))));
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.count()) * bytes_of(tensor.dtype()));
    tensor.copy_to_host(bytes, tensor.dtype());
  } catch (const FileError&) {
  }
}
