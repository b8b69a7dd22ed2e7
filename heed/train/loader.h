// Prefetches batches in background threads. They are returned in order, whichever thread built them.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "heed/train/task.h"

namespace heed {

class Loader {
 public:
  using Make = std::function<Batch(const std::vector<int64_t>& samples)>;

  // Starts at batch `first`. At most `ahead` finished batches are buffered. With 0 threads, next() builds the batch.
  Loader(std::vector<std::vector<int64_t>> batches, size_t first, Make make, int64_t threads, size_t ahead = 8);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  Batch next();  // rethrows an exception of the thread that built it

 private:
  struct Slot {
    Batch batch = {};
    std::exception_ptr error = {};
    bool ready = false;
  };
  void work();
  void stop();

  const std::vector<std::vector<int64_t>> batches_;
  const Make make_;
  const size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;  // ring buffer: batch i uses slot i % ahead_
  size_t taken_, started_;   // batches returned by next(); batches a thread has started
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace heed
