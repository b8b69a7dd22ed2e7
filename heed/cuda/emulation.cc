#include "heed/cuda/emulation.h"

#include <sys/mman.h>

#include <cstdlib>
#include <mutex>
#include <string_view>

#include "heed/core/check.h"

namespace heed::cuda::emulation {
namespace {

// A range of addresses, most of it without memory. Blocks are taken from it in order; their addresses are not used again.
class Arena {
 public:
  std::byte* allocate(int64_t bytes) {
    std::lock_guard lock(mutex_);
    const size_t size = (static_cast<size_t>(bytes) + kPage - 1) / kPage * kPage;
    if (size > kSize - used_) return nullptr;
    std::byte* const block = base_ + used_;
    used_ += size;
    if (kernels_ > 0) protect(PROT_READ | PROT_WRITE);
    return block;
  }
  void allow_access() {
    std::lock_guard lock(mutex_);
    if (kernels_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void forbid_access() {
    std::lock_guard lock(mutex_);
    if (--kernels_ == 0) protect(PROT_NONE);
  }

 private:
  static constexpr size_t kSize = size_t{1} << 40, kPage = 4096;

  static std::byte* reserve() {
    void* const pages = mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(pages != MAP_FAILED, "emulated CUDA: no addresses for its memory");
    return static_cast<std::byte*>(pages);
  }
  void protect(int access) {
    if (used_ > 0) check(mprotect(base_, used_, access) == 0, "emulated CUDA: its memory cannot be protected");
  }

  std::mutex mutex_;
  std::byte* const base_ = reserve();
  size_t used_ = 0;
  int kernels_ = 0;  // that run now
};

Arena& arena() {
  static auto* const instance = new Arena;
  return *instance;
}

}  // namespace

bool is_on() {
  static const bool on = [] {
    const char* const setting = std::getenv("HEED_EMULATE_CUDA");
    return setting && std::string_view(setting) == "1";
  }();
  return on;
}

std::byte* allocate(int64_t bytes) { return arena().allocate(bytes); }
void allow_access() { arena().allow_access(); }
void forbid_access() { arena().forbid_access(); }

}  // namespace heed::cuda::emulation
