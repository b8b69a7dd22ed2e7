// Elements as CUDA kernels load and store them: float, Bf16 or F16 in memory, float in registers. Vectors are 16 bytes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "heed/core/dtype.h"

namespace heed::cuda {

__device__ inline float load(const float* from) { return *from; }
__device__ inline float load(const Bf16* from) { return __uint_as_float(uint32_t{from->bits} << 16); }
__device__ inline float load(const F16* from) { return __half2float(*reinterpret_cast<const __half*>(from)); }
__device__ inline void store(float* to, float x) { *to = x; }
__device__ inline void store(Bf16* to, float x) { *reinterpret_cast<__nv_bfloat16*>(to) = __float2bfloat16_rn(x); }
__device__ inline void store(F16* to, float x) { *reinterpret_cast<__half*>(to) = __float2half_rn(x); }

// x rounded to the type of memory, as if it were stored and loaded.
__device__ inline float rounded_to(float x, float) { return x; }
__device__ inline float rounded_to(float x, Bf16) { return __bfloat162float(__float2bfloat16_rn(x)); }

// 16 bytes of consecutive elements, at an address that is a multiple of 16.
template <class T>
struct Pack {
  static constexpr int kCount = 16 / sizeof(T);
  float values[kCount];
};

__device__ inline Pack<float> load_pack(const float* from) {
  const float4 x = *reinterpret_cast<const float4*>(from);
  return {{x.x, x.y, x.z, x.w}};
}
__device__ inline Pack<Bf16> load_pack(const Bf16* from) {
  const uint4 x = *reinterpret_cast<const uint4*>(from);
  const uint32_t words[4] = {x.x, x.y, x.z, x.w};
  Pack<Bf16> pack;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pack.values[2 * i] = __uint_as_float(words[i] << 16);
    pack.values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
  return pack;
}
__device__ inline void store_pack(float* to, const Pack<float>& x) {
  *reinterpret_cast<float4*>(to) = make_float4(x.values[0], x.values[1], x.values[2], x.values[3]);
}
__device__ inline void store_pack(Bf16* to, const Pack<Bf16>& x) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x.values[2 * i], x.values[2 * i + 1]);
    words[i] = *reinterpret_cast<const uint32_t*>(&pair);
  }
  *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

inline bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

}  // namespace heed::cuda
