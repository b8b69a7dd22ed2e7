// Threads that answer requests. The queue is bounded: post() refuses a task when it is full.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace heed::serve {

class Workers {
 public:
  Workers(int threads, size_t most_waiting);
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  bool post(std::function<void()> task);         // false: the queue is full
  void post_always(std::function<void()> task);  // for the rest of a request that was accepted
  size_t waiting();
  void stop();  // drops what waits and ends the threads; later tasks are refused

 private:
  void work();

  const size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace heed::serve
