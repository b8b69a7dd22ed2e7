// Packs of 16 bytes that stay as they are in memory until an element is used: prefetched operands take fewer registers.
#pragma once

#include "heed/cuda/element.cuh"

namespace heed::cuda {

// Half as many registers as its values take if they are bf16.
template <class T>
struct RawPack {
  uint32_t words[4];

  __device__ float operator[](int i) const {
    if constexpr (sizeof(T) == 4) return __uint_as_float(words[i]);
    return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
  }
};
template <class T>
__device__ RawPack<T> load_raw(const T* from) {
  const uint4 x = *reinterpret_cast<const uint4*>(from);
  return {{x.x, x.y, x.z, x.w}};
}

// The same for weights, which are read once: f32, bf16 or signed bytes.
template <class W>
struct WeightPack {
  static constexpr int kCount = 16 / sizeof(W);
  uint4 bits;

  __device__ void load(const W* from) { bits = __ldcs(reinterpret_cast<const uint4*>(from)); }
  __device__ float value(int i) const {
    const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
    if constexpr (sizeof(W) == 4) return __uint_as_float(words[i]);
    if constexpr (sizeof(W) == 2) return __uint_as_float(i % 2 ? words[i / 2] & 0xffff0000u : words[i / 2] << 16);
    if constexpr (sizeof(W) == 1)  // 2^23 + 128 + w as a float: its last byte is w + 128
      return __uint_as_float(__byte_perm(words[i / 4] ^ 0x80808080u, 0x4b000000u, 0x7650u + i % 4)) - 8388736.0f;
  }
};

}  // namespace heed::cuda
