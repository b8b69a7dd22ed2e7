// The part of NCCL's C API that heed uses, as NVIDIA documents it: the library is loaded at run time, so that heed is built without it.
// tests/cuda/nccl_api_test.cc compares every value and layout with the real header.
#pragma once

#include <cstddef>

namespace heed::cuda::nccl {

using Status = int;
inline constexpr Status kSuccess = 0;
inline constexpr int kFloat = 7;  // ncclDataType_t
inline constexpr int kSum = 0;    // ncclRedOp_t

struct Id {
  char bytes[128];
};
struct Communicator;

struct Functions {
  const char* (*error_text)(Status status);
  Status (*new_id)(Id* id);
  Status (*create)(Communicator** communicator, int size, Id id, int rank);
  Status (*abort)(Communicator* communicator);
  Status (*group_start)();
  Status (*group_end)();
  Status (*send)(const void* data, size_t count, int type, int rank, Communicator* communicator, void* stream);
  Status (*receive)(void* data, size_t count, int type, int rank, Communicator* communicator, void* stream);
  Status (*all_reduce)(const void* send, void* receive, size_t count, int type, int operation, Communicator* communicator, void* stream);
};

}  // namespace heed::cuda::nccl
