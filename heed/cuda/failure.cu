#include "heed/cuda/failure.cuh"

#include "heed/cuda/launch.cuh"

namespace heed::cuda {

IndexFailure* index_failure() {
  static IndexFailure* const failure = [] {
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, sizeof(IndexFailure), cudaHostAllocPortable | cudaHostAllocMapped), "memory");
    return new (memory) IndexFailure{};
  }();
  return failure;
}

void throw_failure() {
  IndexFailure* const shared = index_failure();
  if (!*const_cast<const char* const volatile*>(&shared->op)) return;
  const IndexFailure found = *shared;
  shared->op = nullptr;
  Shape position(std::span(found.shape, static_cast<size_t>(found.rank)));
  int64_t rest = found.place;
  for (int axis = found.rank - 1; axis >= 0; --axis) {
    position[axis] = rest % found.shape[axis];
    rest /= found.shape[axis];
  }
  fail(found.op, ": found index ", found.index, " at position ", position, ", expected 0 to ", found.bound - 1);
}

}  // namespace heed::cuda
