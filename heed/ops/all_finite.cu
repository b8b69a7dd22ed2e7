// Finding NaN and infinity.
#include "heed/ops/all_finite.h"

#include "heed/cuda/row.cuh"

namespace heed::cuda {
namespace {

// `found` is 0 before, if there is more than one block.
template <class T>
__global__ void find(const T* x, int64_t count, int32_t* found) {
  bool here = false;
  for_grid_elements<T>(count, unaligned_head(count, x), [&](int64_t i, auto some) {
    const auto value = load_some<some.value>(x + i);
#pragma unroll
    for (const float v : value.values) here |= !isfinite(v);
  });
  const bool any = __syncthreads_or(here);
  if (threadIdx.x == 0 && (any || gridDim.x == 1)) *found = any;  // all blocks that write write 1
}

}  // namespace

void find_nonfinite(const FindNonfinite& f) {
  with_storage(f.dtype, [&]<class T>(T) {
    const unsigned blocks = element_blocks<T>(f.count);
    if (blocks > 1) check_cuda(cudaMemsetAsync(f.found, 0, sizeof(int32_t), stream()), "memset");
    start(find<T>, blocks, 256, 0, static_cast<const T*>(f.x), f.count, f.found);
  });
}

}  // namespace heed::cuda
