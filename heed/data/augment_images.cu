// A block of threads augments an image. Compiled without fused multiply-adds (cmake/cuda.cmake), so that the bytes equal those of the CPU.
#include "heed/data/augment_images.h"

#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

constexpr int kFewThreads = 256, kManyThreads = 1024, kSmallImage = 64 * 64;

// Marked for the host, too, since the steps are; runs on the device only.
struct BlockTeam {
  template <class Each>
  HEED_HOST_DEVICE void each([[maybe_unused]] int count, [[maybe_unused]] const Each& run) const {
#ifdef __CUDA_ARCH__
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) run(i);
    __syncthreads();
#endif
  }
  HEED_HOST_DEVICE static void increment([[maybe_unused]] uint32_t& count) {
#ifdef __CUDA_ARCH__
    atomicAdd(&count, 1u);  // counts are integers: their order does not matter
#endif
  }
};

__global__ void __launch_bounds__(kManyThreads) augment_kernel(const __grid_constant__ AugmentImages p) {
  __shared__ StepTables shared;
  augment_image(BlockTeam(), p, int64_t{blockIdx.x}, shared);
}

__global__ void mix_kernel(const __grid_constant__ MixImages p) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.count(); i += step) p.out[i] = mixed_value(p, i);
}

}  // namespace

void augment_images(const AugmentImages& p) {
  if (p.B == 0) return;
  start(augment_kernel, static_cast<unsigned>(p.B), p.Y * p.X > kSmallImage ? kManyThreads : kFewThreads, 0, p);
}

void mix_images(const MixImages& p) {
  if (p.count() == 0) return;
  start(mix_kernel, block_count(p.count(), kFewThreads), kFewThreads, 0, p);
}

}  // namespace heed::cuda
