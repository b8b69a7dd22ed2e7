// The random numbers of the CPU: uniform ones bit for bit, normal ones up to rounding.
#include "heed/core/random_kernels.h"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

struct Uniform {
  float low, high;

  __device__ float4 operator()(const std::array<uint32_t, 4>& words) const {
    const auto number = [&](int i) { return __fadd_rn(low, __fmul_rn(high - low, unit_float(words[i]))); };  // rounds twice, as on the CPU
    return make_float4(number(0), number(1), number(2), number(3));
  }
};

struct Normal {  // Box and Muller 1958
  float mean, deviation;

  __device__ float2 pair(uint32_t first, uint32_t second) const {
    const float radius = sqrtf(-2 * logf(1 - unit_float(first))) * deviation;
    float sine, cosine;
    sincospif(2 * unit_float(second), &sine, &cosine);
    return make_float2(mean + radius * cosine, mean + radius * sine);
  }
  __device__ float4 operator()(const std::array<uint32_t, 4>& words) const {
    const float2 a = pair(words[0], words[1]), b = pair(words[2], words[3]);
    return make_float4(a.x, a.y, b.x, b.y);
  }
};

// Four elements from every block of the generator.
template <class Make>
__global__ void fill_blocks(Make make, float* to, int64_t count, RandomKey key, bool aligned) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x * 4;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 4; i < count; i += step) {
    const float4 all = make(philox(key, static_cast<uint64_t>(i / 4)));
    if (aligned && i + 4 <= count) {
      *reinterpret_cast<float4*>(to + i) = all;
      continue;
    }
    to[i] = all.x;
    if (i + 1 < count) to[i + 1] = all.y;
    if (i + 2 < count) to[i + 2] = all.z;
    if (i + 3 < count) to[i + 3] = all.w;
  }
}

template <class Make>
void fill(Make make, float* to, int64_t count, RandomKey key) {
  if (count == 0) return;
  start(fill_blocks<Make>, block_count(count, 256 * 4, 8), 256, 0, make, to, count, key, reinterpret_cast<uintptr_t>(to) % 16 == 0);
}

}  // namespace

void fill_uniform(const FillUniform& f) { fill(Uniform{f.low, f.high}, f.to, f.count, f.key); }
void fill_normal(const FillNormal& f) { fill(Normal{f.mean, f.deviation}, f.to, f.count, f.key); }

}  // namespace heed::cuda
