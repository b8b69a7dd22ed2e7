// How many multiply-adds the ops do, for those who want to know: the count that predictions are held against. It costs one look at a
// number per op while nobody counts.
#pragma once

#include <atomic>
#include <cstdint>

#include "heed/core/api.h"

namespace HEED_API heed {

namespace work {
inline std::atomic<int> counters{0};           // WorkCounts alive
inline std::atomic<int64_t> multiply_adds{0};  // done while there were any
}  // namespace work

// Whether any WorkCount lives.
inline bool counting_work() { return work::counters.load(std::memory_order_relaxed) > 0; }

// Said by every op that multiplies matrices: linear layers, products, convolutions, attention and their gradients. Numbers that padding
// adds are left out, and so are pairs of tokens that a mask hides.
inline void count_work(int64_t multiply_adds) {
  if (counting_work()) [[unlikely]]
    work::multiply_adds.fetch_add(multiply_adds, std::memory_order_relaxed);
}

// While one of these lives, the ops of all threads are counted.
class WorkCount {
 public:
  WorkCount() : before_(work::multiply_adds) { ++work::counters; }
  ~WorkCount() { --work::counters; }
  WorkCount(const WorkCount&) = delete;
  WorkCount& operator=(const WorkCount&) = delete;

  int64_t multiply_adds() const { return work::multiply_adds - before_; }  // since it began

 private:
  int64_t before_;
};

}  // namespace heed
