// Messages between GPUs by NVIDIA's NCCL, which is loaded when it is first needed (find_library.h; HEED_NCCL names the file).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "heed/core/api.h"

namespace HEED_API heed {
namespace cuda {

bool has_nccl();
std::string nccl_id();               // of a new group; every process of it needs the same one
std::string gpu_address(int index);  // of a device on its machine: the same for all processes that use it

// The processes of a group, each with a GPU of its own. Work is queued on heed's stream of the device, in the order of the calls, which is
// the same in all processes.
class NcclGroup {
 public:
  NcclGroup(const std::string& id, int rank, int size, int device);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  struct Part {
    float* values;
    int64_t count;
    int rank;  // to which it goes, or from which it comes
  };
  // All at once. Parts for a process arrive in the order in which they were sent.
  void send_and_receive(std::span<const Part> send, std::span<const Part> receive);
  void all_reduce(float* values, int64_t count);

 private:
  struct Membership;  // the device and NCCL's communicator
  std::unique_ptr<Membership> membership_;
};

}  // namespace cuda
}  // namespace heed
