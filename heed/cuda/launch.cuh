// Launching CUDA kernels: the stream, errors, grid sizes.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "heed/core/check.h"

namespace heed::cuda {

// Everything that heed computes on a device runs in order on this stream of the device in use.
cudaStream_t stream();
int multiprocessor_count();  // of the device in use
int compute_capability();    // 90 for Hopper

inline void check_cuda(cudaError_t status, const char* what) {
  check(status == cudaSuccess, "cuda: ", what, ": ", cudaGetErrorString(status));
}

template <class T>
constexpr T divide_up(T a, T b) {
  return (a + b - 1) / b;
}

// Blocks for `count` elements with `per_block` each; kernels loop over the grid, so that the number is limited.
inline unsigned block_count(int64_t count, int64_t per_block, int blocks_per_multiprocessor = 16) {
  const int64_t most = int64_t{multiprocessor_count()} * blocks_per_multiprocessor;
  return static_cast<unsigned>(std::clamp<int64_t>(divide_up(count, per_block), 1, most));
}

// A kernel whose static and dynamic shared memory are together more than 48 KiB must be allowed to have it. Static: at most 16 KiB.
template <class... Parameters>
void allow_shared(void (*kernel)(Parameters...), size_t dynamic) {
  if (dynamic <= 32 * 1024) return;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(dynamic)), "shared memory");
}

// kernel<<<grid, block, shared>>>(arguments...) on heed's stream.
template <class... Parameters, class... Arguments>
void start(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared, Arguments&&... arguments) {
  allow_shared(kernel, shared);
  kernel<<<grid, block, shared, stream()>>>(static_cast<Parameters>(arguments)...);
  check_cuda(cudaGetLastError(), "launch");
}

}  // namespace heed::cuda
