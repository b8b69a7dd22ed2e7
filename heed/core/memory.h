// The caching memory pools, one per device, and the storage that tensors share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "heed/core/api.h"
#include "heed/core/device.h"

namespace HEED_API heed {

// How much memory the tensors of a device take.
struct MemoryUse {
  int64_t in_use;  // bytes used by tensors now
  int64_t peak;    // the maximum since the last reset_peak_memory()
  int64_t cached;  // bytes kept for reuse
};

// What the pool of a device holds now.
MemoryUse memory_use(Device device);
// From now on the peak is counted anew.
void reset_peak_memory(Device device);
void release_cached_memory(Device device);  // returns the cached blocks to the system
void pin_cached_memory(Device device);      // from now on they are never returned, because CUDA graphs use their addresses

// A block of bytes, aligned to 64, from the pool, or a view of memory that `owner` keeps alive.
class Storage {
 public:
  Storage(int64_t bytes, Device device);
  // borrowed: others may use the memory, too
  Storage(std::shared_ptr<const void> owner, std::byte* data, int64_t bytes, bool borrowed);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // The block, its size, and where it is.
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  // Whether the memory belongs to others, such as the caller's buffer.
  bool is_borrowed() const { return borrowed_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
  std::shared_ptr<const void> owner_;  // null: the block belongs to the pool
  int64_t block_ = 0;                  // its size there
  bool borrowed_ = false;
};

}  // namespace heed
