// Any bytes as the index of a sharded checkpoint: refused, or all files it names are inside its folder.
#include <cstdlib>

#include "heed/io/safetensors.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  try {
    for (const auto& [name, file] : parse_safetensors_index("input", std::string_view(reinterpret_cast<const char*>(data), size))) {
      const std::string path = (Path("/folder") / file).lexically_normal();
      if (!path.starts_with("/folder")) std::abort();
    }
  } catch (const FileError&) {
  }
}
