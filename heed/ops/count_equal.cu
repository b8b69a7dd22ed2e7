#include "heed/ops/count_equal.h"

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

__global__ void count_kernel(const CountEqual args) {
  __shared__ int scratch[32];
  int mine = 0;
  for (int64_t i = threadIdx.x; i < args.count; i += blockDim.x) mine += args.a[i] == args.b[i];
  const int equal = block_sum(mine, scratch);
  if (threadIdx.x == 0) *args.equal = static_cast<float>(equal);
}

}  // namespace

void count_equal_elements(const CountEqual& args) { start(count_kernel, 1, 1024, 0, args); }

}  // namespace heed::cuda
