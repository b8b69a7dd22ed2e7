// Any bytes as a safetensors file: refused, or all tensors can be read completely.
#include "heed/io/safetensors.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  try {
    const Safetensors file = Safetensors::parse(MappedFile::in_memory("input", std::as_bytes(std::span(data, size))));
    for (const std::string& name : file.names()) {
      const Tensor tensor = file.tensor(name);
      std::vector<std::byte> bytes(static_cast<size_t>(tensor.count()) * bytes_of(tensor.dtype()));
      tensor.copy_to_host(bytes, tensor.dtype());
    }
  } catch (const FileError&) {
  }
}
