// A kernel is one struct of pointers and sizes and one function per device. launch() is the only place that chooses the device, skips
// kernels in a dry run and counts multiply-adds. Headers with argument structs are read by g++ and nvcc.
#pragma once

#include <optional>
#include <type_traits>

#include "heed/core/api.h"
#include "heed/core/device.h"
#include "heed/core/dry_run.h"
#include "heed/core/memory.h"
#include "heed/core/work_count.h"
#include "heed/cuda/runtime.h"

namespace HEED_API heed {

template <class Args>
struct Kernel {
  const char* name;
  void (*cpu)(const Args& args);
  void (*cuda)(const Args& args);
};

// Args may have
//   int64_t multiply_adds() const                    the work of the kernel
//   int64_t workspace_bytes(Device device) const     scratch memory, which launch puts into `void* workspace`
template <class Args>
void launch(const Kernel<Args>& kernel, Device device, std::type_identity_t<Args> args) {
  if constexpr (requires { args.multiply_adds(); })
    if (counting_work()) [[unlikely]]
      count_work(args.multiply_adds());
  std::optional<Storage> workspace;
  if constexpr (requires { args.workspace_bytes(device); })
    if (const int64_t bytes = args.workspace_bytes(cuda::computing_device(device)); bytes > 0)
      args.workspace = workspace.emplace(bytes, device).data();
  if (DryRun::newest()) return;
  if (device.kind == Device::Kind::cpu) return kernel.cpu(args);
  const cuda::OnDevice scope(device.index);
  (cuda::computing_device(device) == kCpu ? kernel.cpu : kernel.cuda)(args);
}

}  // namespace heed

// Declares kernel `name` with its two functions, cpu::name and cuda::name. On a line of its own, in namespace heed: the build reads
// these lines to find every kernel.
#define HEED_KERNEL(name, Args) \
  namespace cpu {               \
  void name(const Args& args);  \
  }                             \
  namespace cuda {              \
  void name(const Args& args);  \
  }                             \
  inline constexpr Kernel<Args> name { #name, cpu::name, cuda::name }
