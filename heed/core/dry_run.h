// Running a program for the memory it would take, and for nothing else: of a model of any size, in no time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "heed/core/api.h"

namespace HEED_API heed {

// While one of these lives, ops of this thread take memory that is not really there, and launch() (kernel.h) runs no kernel. Tensors have
// shapes, but no values that mean anything. Memory that a kernel takes for itself is not counted; its workspace is.
class DryRun {
 public:
  DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  // Bytes that tensors made in it would hold, rounded as the memory pool does.
  int64_t in_use() const;
  int64_t peak() const;  // the most since the last reset_peak()
  void reset_peak();

  static const DryRun* newest() { return newest_; }      // of this thread, or null
  std::shared_ptr<std::byte> take(int64_t bytes) const;  // for Storage: to be read and written, zeros at first

 private:
  struct Counts;

  static thread_local const DryRun* newest_;
  const DryRun* before_;
  std::shared_ptr<Counts> counts_;
};

int64_t pool_bytes(int64_t bytes);  // that the memory pool takes for so many (memory.cc)

}  // namespace heed
