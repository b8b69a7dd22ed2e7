// Counts the multiply-adds of ops, for example to check predicted costs. While no count is active, the cost is reading one number per op.
#pragma once

#include <atomic>
#include <cstdint>

#include "heed/core/api.h"

namespace HEED_API heed {

namespace work {
inline std::atomic<int> counters{0};           // number of WorkCount objects
inline std::atomic<int64_t> multiply_adds{0};  // counted while there was one
}  // namespace work

// Whether any WorkCount lives.
inline bool counting_work() { return work::counters.load(std::memory_order_relaxed) > 0; }

// Called by every op that multiplies matrices: linear layers, products, convolutions, attention and their gradients. Padding is not
// counted, nor are pairs of tokens that a mask removes.
inline void count_work(int64_t multiply_adds) {
  if (counting_work()) [[unlikely]]
    work::multiply_adds.fetch_add(multiply_adds, std::memory_order_relaxed);
}

// While an object of this class exists, the ops of all threads are counted.
class WorkCount {
 public:
  WorkCount() : before_(static_cast<uint64_t>(work::multiply_adds.load())) { ++work::counters; }
  ~WorkCount() { --work::counters; }
  WorkCount(const WorkCount&) = delete;
  WorkCount& operator=(const WorkCount&) = delete;

  // Since its construction. Counts wrap, as costs of absurd configs may exceed them; differences are right as long as they fit.
  int64_t multiply_adds() const { return static_cast<int64_t>(static_cast<uint64_t>(work::multiply_adds.load()) - before_); }

 private:
  uint64_t before_;
};

}  // namespace heed
