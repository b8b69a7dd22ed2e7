// Blocks are rounded to size classes (eight to every power of two), kept when freed and handed out again.
#include "heed/core/memory.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "heed/core/check.h"
#include "heed/core/dry_run.h"
#include "heed/core/isa.h"
#include "heed/core/memory_limit.h"

namespace heed {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kShareFrom = int64_t{1} << 18;
constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t size_class(int64_t bytes) {
  if (bytes <= 1024) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const int64_t step = int64_t{1} << (std::bit_width(static_cast<uint64_t>(bytes - 1)) - 4);
  return (bytes + step - 1) / step * step;
}

class MemoryPool {
 public:
  // held: the size of the block, which free needs
  std::byte* take(int64_t bytes, int64_t& held) {
    const int64_t size = held = size_class(bytes);
    std::lock_guard lock(mutex_);
    std::byte* block = nullptr;
    // A large block may serve what is a little smaller: shapes of forward and backward differ, their memory need not.
    const int64_t most = size < kShareFrom ? size : size + size / 4;
    auto fit = free_.lower_bound(size);
    while (fit != free_.end() && fit->first <= most && !fit->second) ++fit;
    if (fit != free_.end() && fit->first <= most) {
      held = fit->first;
      block = reinterpret_cast<std::byte*>(fit->second);
      fit->second = fit->second->next;
      use_.cached -= held;
    } else {
      free_.try_emplace(size, nullptr);  // here, as give() must not need memory
      check(size <= limit_ - use_.in_use, "memory: ", bytes, " bytes asked for, ", use_.in_use, " in use, the machine has ", limit_);
      if (size > limit_ - use_.in_use - use_.cached) release();
      block = allocate(size);
    }
    use_.in_use += size;
    use_.peak = std::max(use_.peak, use_.in_use);
    return block;
  }

  // Allocates nothing: destructors call it, also when there is no memory.
  void give(std::byte* block, int64_t bytes, int64_t held) {
    std::lock_guard lock(mutex_);
    FreeBlock*& first = free_.find(held)->second;
    first = new (block) FreeBlock{first};
    use_.in_use -= size_class(bytes);
    use_.cached += held;
  }

  MemoryUse use() {
    std::lock_guard lock(mutex_);
    return use_;
  }
  void reset_peak() {
    std::lock_guard lock(mutex_);
    use_.peak = use_.in_use;
  }
  void trim() {
    std::lock_guard lock(mutex_);
    release();
  }

 private:
  struct FreeBlock {  // in the first bytes of the block itself
    FreeBlock* next;
  };

  static std::byte* allocate(int64_t size) {
    const bool large = size >= 2 * kHugePage;
    const int64_t alignment = large ? kHugePage : kAlignment;
    void* block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>((size + alignment - 1) / alignment * alignment));
    if (block == nullptr) throw std::bad_alloc();                         // not an Error: nobody may take it for a fault of a file
    if (large) madvise(block, static_cast<size_t>(size), MADV_HUGEPAGE);  // fewer page faults; only a hint
    return static_cast<std::byte*>(block);
  }

  void release() {
    for (auto& [size, first] : free_)
      while (first) std::free(std::exchange(first, first->next));
    use_.cached = 0;
  }

  std::mutex mutex_;
  std::map<int64_t, FreeBlock*> free_;  // by size; an entry for every size that was ever taken
  MemoryUse use_{};
  const int64_t limit_ = memory_limit();
};

MemoryPool& memory_pool() {
  static MemoryPool* const instance = (apply_instruction_set(), new MemoryPool);  // never destroyed: tensors may outlive every static
  return *instance;
}

}  // namespace

MemoryUse memory_use() { return memory_pool().use(); }
void reset_peak_memory() { memory_pool().reset_peak(); }
void release_cached_memory() { memory_pool().trim(); }
int64_t pool_bytes(int64_t bytes) { return size_class(std::max<int64_t>(bytes, 1)); }

Storage::Storage(int64_t bytes, Device device) : bytes_(bytes), device_(device) {
  check(device == kCpu, "tensor: this build of heed has no CUDA; the device must be cpu");
  if (const DryRun* dry = DryRun::newest()) {
    apply_instruction_set();
    const std::shared_ptr<std::byte> block = dry->take(bytes);
    data_ = block.get();
    owner_ = block;
    return;
  }
  data_ = memory_pool().take(std::max<int64_t>(bytes, 1), block_);
}

Storage::Storage(std::shared_ptr<const void> owner, std::byte* data, int64_t bytes) : data_(data), bytes_(bytes), owner_(std::move(owner)) {
  apply_instruction_set();  // a process may compute on borrowed memory before it allocates any
}

Storage::~Storage() {
  if (!owner_) memory_pool().give(data_, std::max<int64_t>(bytes_, 1), block_);
}

}  // namespace heed
