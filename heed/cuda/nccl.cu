#include "heed/cuda/nccl.h"

#include <array>
#include <cstring>

#include "heed/cuda/find_library.h"
#include "heed/cuda/launch.cuh"
#include "heed/cuda/nccl_api.h"
#include "heed/cuda/runtime.h"

namespace heed::cuda {
namespace {

struct NcclLibrary {
  std::string file;
  nccl::Functions functions = {};
  bool usable = false;

  NcclLibrary() {
    void* const handle =
        open_library({.title = "NCCL", .variable = "HEED_NCCL", .names = {"libnccl.so.2"}, .packages = {"nvidia/nccl/lib"}}, file);
    if (!handle) return;
    const auto get = [&](auto& function, const char* name) { find_function(handle, "NCCL: " + file, name, function); };
    get(functions.error_text, "ncclGetErrorString");
    get(functions.new_id, "ncclGetUniqueId");
    get(functions.create, "ncclCommInitRank");
    get(functions.abort, "ncclCommAbort");
    get(functions.group_start, "ncclGroupStart");
    get(functions.group_end, "ncclGroupEnd");
    get(functions.send, "ncclSend");
    get(functions.receive, "ncclRecv");
    get(functions.all_reduce, "ncclAllReduce");
    usable = true;
  }
};

const NcclLibrary& nccl_library() {
  static const auto* const loaded = new NcclLibrary;  // never unloaded: streams may still run its kernels at exit
  return *loaded;
}

void check_nccl(nccl::Status status, const char* what) {
  check(status == nccl::kSuccess, "NCCL: ", what, ": ", nccl_library().functions.error_text(status));
}

}  // namespace

bool has_nccl() { return nccl_library().usable; }

std::string nccl_id() {
  nccl::Id id;
  check_nccl(nccl_library().functions.new_id(&id), "a new group");
  return {id.bytes, sizeof id.bytes};
}

std::string gpu_address(int index) {
  std::array<char, 32> text{};
  check_cuda(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), index), "address of the device");
  return text.data();
}

struct NcclGroup::Membership {
  int device = 0;
  nccl::Communicator* communicator = nullptr;
};

NcclGroup::NcclGroup(const std::string& id, int rank, int size, int device) {
  nccl::Id bytes;
  check(id.size() == sizeof bytes.bytes, "NCCL: the id of a group has ", id.size(), " bytes, expected ", sizeof bytes.bytes);
  std::memcpy(bytes.bytes, id.data(), id.size());
  const OnDevice scope(device);
  nccl::Communicator* made = nullptr;
  check_nccl(nccl_library().functions.create(&made, size, bytes, rank), "joining the group");
  membership_ = std::make_unique<Membership>(Membership{device, made});
}

NcclGroup::~NcclGroup() { nccl_library().functions.abort(membership_->communicator); }

void NcclGroup::send_and_receive(std::span<const Part> send, std::span<const Part> receive) {
  const OnDevice scope(membership_->device);
  const nccl::Functions& f = nccl_library().functions;
  auto* const group = membership_->communicator;
  check_nccl(f.group_start(), "messages");
  for (const Part& part : send)
    if (part.count > 0)
      check_nccl(f.send(part.values, static_cast<size_t>(part.count), nccl::kFloat, part.rank, group, stream()), "sending");
  for (const Part& part : receive)
    if (part.count > 0)
      check_nccl(f.receive(part.values, static_cast<size_t>(part.count), nccl::kFloat, part.rank, group, stream()), "receiving");
  check_nccl(f.group_end(), "messages");
}

void NcclGroup::all_reduce(float* values, int64_t count) {
  const OnDevice scope(membership_->device);
  auto* const group = membership_->communicator;
  check_nccl(nccl_library().functions.all_reduce(values, values, static_cast<size_t>(count), nccl::kFloat, nccl::kSum, group, stream()),
             "sums");
}

}  // namespace heed::cuda
