// Predicts the memory that code would use, by running it without computing: fast for models of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "heed/core/api.h"

namespace HEED_API heed {

// While an object of this class exists, ops of this thread allocate no real memory, and launch() (kernel.h) runs no kernel. Tensors have
// shapes but no meaningful values. Workspaces of kernels are counted, other memory that a kernel allocates is not.
class DryRun {
 public:
  DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  // Bytes that tensors created during the dry run would use, rounded as in the memory pool.
  int64_t in_use() const;
  int64_t peak() const;  // the maximum since the last reset_peak()
  void reset_peak();

  static const DryRun* newest() { return newest_; }      // of this thread, or null
  std::shared_ptr<std::byte> take(int64_t bytes) const;  // for Storage: readable and writable, initially zero

 private:
  struct Counts;

  static thread_local const DryRun* newest_;
  const DryRun* before_;
  std::shared_ptr<Counts> counts_;
};

int64_t pool_bytes(int64_t bytes);  // size of the block that the memory pool allocates for `bytes` (memory.cc)

}  // namespace heed
