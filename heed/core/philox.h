// Counter-based random numbers: number i of a stream is a function of (seed, stream, i). Philox4x32-7 of Salmon et al., "Parallel Random
// Numbers: As Easy as 1, 2, 3" (2011), whose table names 7 rounds as the fewest that pass every test of BigCrush.
#pragma once

#include <array>
#include <cstdint>

#include "heed/core/api.h"
#include "heed/core/device.h"

namespace HEED_API heed {

// Identifies one stream of random numbers. Kernels compute its elements in any order.
struct RandomKey {
  uint64_t seed, stream;
  const uint64_t* advance = nullptr;  // in device memory: added to the stream, so that a captured kernel draws new numbers in every run
};

HEED_HOST_DEVICE inline std::array<uint32_t, 4> philox(RandomKey key, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
#ifdef __CUDA_ARCH__
  if (key.advance) key.stream += *key.advance;
#endif
  uint32_t c2 = static_cast<uint32_t>(key.stream), c3 = static_cast<uint32_t>(key.stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 7; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c0, b = uint64_t{0xCD9E8D57} * c2;
    const uint32_t next0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0, next2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    c0 = next0;
    c2 = next2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

HEED_HOST_DEVICE inline float unit_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }  // in [0, 1)

}  // namespace heed
