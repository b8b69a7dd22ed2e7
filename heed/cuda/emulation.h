// A GPU for tests on machines without one. With HEED_EMULATE_CUDA=1, cuda:0 is memory that only kernels may touch, and the CPU's functions
// compute there. Code that reads a tensor outside of a kernel crashes, and code that mixes devices fails, as both would on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::cuda::emulation {

bool is_on();
std::byte* allocate(int64_t bytes);  // null: no addresses left
void allow_access();                 // until as many calls of forbid_access
void forbid_access();

}  // namespace heed::cuda::emulation
