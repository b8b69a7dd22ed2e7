// Blocks are rounded up to size classes (eight per power of two), kept when freed and reused.
#include "heed/core/memory.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "heed/core/bf16_copy.h"
#include "heed/core/check.h"
#include "heed/core/dry_run.h"
#include "heed/core/isa.h"
#include "heed/core/memory_limit.h"
#include "heed/cuda/runtime.h"

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

std::byte* allocate_on_host(int64_t size) {
  const bool large = size >= 2 * kHugePage;
  const int64_t alignment = large ? kHugePage : kAlignment;
  void* block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>((size + alignment - 1) / alignment * alignment));
  if (block && large) madvise(block, static_cast<size_t>(size), MADV_HUGEPAGE);  // fewer page faults; only a hint
  return static_cast<std::byte*>(block);
}

// Freed blocks of one size. There is memory for a pointer to every block of that size, so giving one back allocates nothing.
struct FreeBlocks {
  std::vector<std::byte*> blocks = {};
  size_t allocated = 0;

  void expect_another() { blocks.reserve(++allocated); }
};

class MemoryPool {
 public:
  explicit MemoryPool(Device device) : device_(device), limit_(device == kCpu ? memory_limit() : cuda::device_info(device.index).memory) {}

  // held: the size of the block, which give() needs
  std::byte* take(int64_t bytes, int64_t& held) {
    std::lock_guard lock(mutex_);
    if (bytes > limit_) out_of_memory(bytes);  // size_class might overflow
    const int64_t size = size_class(bytes);
    // A large block may be used for a slightly smaller request, since shapes in forward and backward differ a little.
    std::byte* block = reuse(size, size < kShareFrom ? size : size + size / 4, held);
    if (!block) block = allocate(bytes, size, held);
    use_.in_use += size;
    use_.peak = std::max(use_.peak, use_.in_use);
    return block;
  }

  // Allocates nothing, because destructors call it, even if there is no memory left.
  void give(std::byte* block, int64_t bytes, int64_t held) {
    std::lock_guard lock(mutex_);
    free_.find(held)->second.blocks.push_back(block);
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
  void pin() {
    std::lock_guard lock(mutex_);
    pinned_ = true;
  }
  void trim() {
    std::lock_guard lock(mutex_);
    release();
  }

 private:
  // The smallest free block of `size` to `most` bytes; null if there is none.
  std::byte* reuse(int64_t size, int64_t most, int64_t& held) {
    auto fit = free_.lower_bound(size);
    while (fit != free_.end() && fit->first <= most && fit->second.blocks.empty()) ++fit;
    if (fit == free_.end() || fit->first > most) return nullptr;
    held = fit->first;
    std::byte* const block = fit->second.blocks.back();
    fit->second.blocks.pop_back();
    use_.cached -= held;
    return block;
  }

  std::byte* allocate(int64_t bytes, int64_t size, int64_t& held) {
    const bool on_host = device_ == kCpu;
    if (size > limit_ - use_.in_use) out_of_memory(bytes);
    if (size > limit_ - use_.in_use - use_.cached)
      if (std::byte* const block = make_room(size, held)) return block;
    held = size;
    free_[size].expect_another();
    std::byte* block = on_host ? allocate_on_host(size) : cuda::allocate(size, device_.index);
    if (!block && !on_host) {  // other processes use the device as well
      block = make_room(size, held);
      if (!block) block = cuda::allocate(size, device_.index);
      if (!block) out_of_memory(bytes);
    }
    if (!block) throw std::bad_alloc();  // not an Error: those are reported as a fault of the file being read
    return block;
  }

  [[noreturn]] void out_of_memory(int64_t bytes) const {
    if (device_ == kCpu) fail("memory: ", bytes, " bytes requested, ", use_.in_use, " in use, the machine has ", limit_);
    fail("memory of ", name_of(device_), ": ", bytes, " bytes requested, ", use_.in_use, " in use, the device has ", limit_,
         "; a smaller batch or precision=bf16 needs less");
  }

  // Returns the free blocks to the system. Pinned ones cannot be returned, but the smallest that is large enough can be used.
  std::byte* make_room(int64_t size, int64_t& held) {
    if (pinned_) return reuse(size, std::numeric_limits<int64_t>::max(), held);
    release();
    return nullptr;
  }

  void release() {
    if (pinned_) return;
    for (auto& [size, free] : free_) {
      for (std::byte* block : free.blocks) device_ == kCpu ? std::free(block) : cuda::release(block, device_.index);
      free.allocated -= free.blocks.size();
      free.blocks.clear();
    }
    use_.cached = 0;
  }

  const Device device_;
  std::mutex mutex_;
  std::map<int64_t, FreeBlocks> free_;  // by size; an entry for every size that was ever taken
  MemoryUse use_{};
  bool pinned_ = false;
  const int64_t limit_;
};

// Made at the first use and never destroyed: tensors may outlive every static.
MemoryPool& memory_pool(Device device) {
  static MemoryPool* const host = (apply_instruction_set(), new MemoryPool(kCpu));
  if (device == kCpu) return *host;
  static std::mutex mutex;
  static auto* const pools = new std::map<int, MemoryPool>;
  std::lock_guard lock(mutex);
  return pools->try_emplace(device.index, device).first->second;
}

}  // namespace

MemoryUse memory_use(Device device) { return memory_pool(device).use(); }
void reset_peak_memory(Device device) { memory_pool(device).reset_peak(); }
void release_cached_memory(Device device) { memory_pool(device).trim(); }
void pin_cached_memory(Device device) { memory_pool(device).pin(); }
int64_t pool_bytes(int64_t bytes) { return size_class(std::max<int64_t>(bytes, 1)); }

Storage::Storage(int64_t bytes, Device device) : bytes_(bytes), device_(device) {
  if (const DryRun* dry = DryRun::newest()) {
    apply_instruction_set();
    const std::shared_ptr<std::byte> block = dry->take(bytes);
    data_ = block.get();
    owner_ = block;
    return;
  }
  data_ = memory_pool(device).take(std::max<int64_t>(bytes, 1), block_);
}

Storage::Storage(std::shared_ptr<const void> owner, std::byte* data, int64_t bytes, bool borrowed)
    : data_(data), bytes_(bytes), owner_(std::move(owner)), borrowed_(borrowed) {
  apply_instruction_set();  // a process may compute on borrowed memory before it allocates any
}

Storage::~Storage() {
  forget_bf16_copies(data_, bytes_);
  if (!owner_) memory_pool(device_).give(data_, std::max<int64_t>(bytes_, 1), block_);
}

}  // namespace heed
