// Any bytes as JSON: refused, or the document round-trips.
#include <cstdlib>

#include "heed/io/json.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  try {
    const Json json = parse_json("input", std::string_view(reinterpret_cast<const char*>(data), size));
    if (parse_json("output", json.dump()) != json) std::abort();
  } catch (const FileError&) {
  }
}
