// Any bytes as an IDX file, plain or gzip: refused, or the whole tensor can be read.
#include "heed/data/idx.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  try {
    heed::parse_idx(std::as_bytes(std::span(data, size)), "input").to_vector<uint8_t>();
  } catch (const heed::FileError&) {
  }
}
