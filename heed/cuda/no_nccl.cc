// NCCL in a build without CUDA: not there.
#include "heed/cuda/nccl.h"
#include "heed/cuda/no_cuda.h"

namespace heed::cuda {

bool has_nccl() { return false; }
std::string nccl_id() { no_cuda("NCCL"); }
std::string gpu_address(int) { no_cuda("NCCL"); }
struct NcclGroup::Membership {};
NcclGroup::NcclGroup(const std::string&, int, int, int) { no_cuda("NCCL"); }
NcclGroup::~NcclGroup() = default;
void NcclGroup::send_and_receive(std::span<const Part>, std::span<const Part>) {}
void NcclGroup::all_reduce(float*, int64_t) {}

}  // namespace heed::cuda
