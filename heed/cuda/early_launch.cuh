// Programmatic dependent launch, on Hopper: kernels that begin while the one before them still runs. Elsewhere launches are normal.
#pragma once

#include <utility>

#include "heed/cuda/launch.cuh"

namespace heed::cuda {

// A kernel started by start_early() may begin while the one before it still runs. So it reads what other kernels of the same graph or
// sequence write, and writes anything, only after wait_for_previous(), which every thread calls; before that it fetches constants, such as
// weights. allow_next() lets the kernel after it begin as well.
template <class... Parameters, class... Arguments>
void start_early(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared, Arguments&&... arguments) {
  if (compute_capability() != 90) return start(kernel, grid, block, shared, std::forward<Arguments>(arguments)...);
  allow_shared(kernel, shared);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared, config.stream = stream();
  config.attrs = &early, config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "launch");
}

__device__ inline void allow_next() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace heed::cuda
