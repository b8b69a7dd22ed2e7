// Copies to shared memory that do not wait (cp.async, sm_80 and newer).
#pragma once

#include <cstdint>

namespace heed::cuda {

// Starts a copy of 16 bytes to shared memory, both addresses multiples of 16; bytes: 16, or 0 for zeros, when nothing is read.
__device__ inline void copy_16(void* shared, const void* from, int bytes) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All copies of this thread but those of the newest `pending` groups have arrived.
template <int pending = 0>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace heed::cuda
