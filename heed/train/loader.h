// Batches made in background threads while the model learns from the ones before. They come in order, whatever thread made them.
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

  // From batch `first` on. At most `ahead` batches wait to be taken. Without threads of its own, next() makes them.
  Loader(std::vector<std::vector<int64_t>> batches, size_t first, Make make, int64_t threads, size_t ahead = 8);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  Batch next();  // an error while making it is thrown here

 private:
  struct Made {
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
  std::vector<Made> waiting_;  // ahead_ places; batch i goes to place i % ahead_
  size_t taken_, begun_;      // how many were handed out; how many some thread has begun
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace heed
