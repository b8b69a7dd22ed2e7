// The thread pool. Work is split into tasks by its shape alone, never by the number of threads, so results do not depend on that
// number; threads take tasks as they become free.
#pragma once

#include <algorithm>
#include <cstdint>

#include "heed/core/api.h"

namespace HEED_API heed {

// The number of threads that ops use.
int thread_count();
void set_thread_count(int threads);  // default: HEED_THREADS, else the cores available to this process

// While an object of this class exists, work of this thread does not use the pool: for background threads that must not wait for it.
class StayInThread {
 public:
  StayInThread();
  ~StayInThread();
  StayInThread(const StayInThread&) = delete;
  StayInThread& operator=(const StayInThread&) = delete;

 private:
  bool before_;
};

namespace detail {
void run_tasks(int64_t tasks, void (*call)(const void* body, int64_t task), const void* body);
}

// body(task) for task in [0, tasks), in any order, on all threads. Subnormal numbers are zero inside. A nested call
// runs in the thread of its task. The first exception thrown by a task is rethrown to the caller.
template <class Body>
void parallel_tasks(int64_t tasks, const Body& body) {
  detail::run_tasks(
      tasks, [](const void* b, int64_t task) { (*static_cast<const Body*>(b))(task); }, &body);
}

// body(begin, end) over [0, count) in pieces of `grain`.
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  parallel_tasks((count + grain - 1) / grain, [&](int64_t task) { body(task * grain, std::min(count, (task + 1) * grain)); });
}

// Rows of this width per task, enough to be worth the overhead of a task.
inline int64_t rows_per_task(int64_t width) {
  constexpr int64_t elements = 1 << 13;
  return width < elements ? elements / std::max<int64_t>(width, 1) : 1;
}

}  // namespace heed
