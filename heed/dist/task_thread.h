// A thread for exchanges that overlap with what the caller computes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "heed/core/api.h"

namespace HEED_API heed {

// Runs tasks in the order in which they were given. What ops do in a task stays in its thread.
class TaskThread {
 public:
  explicit TaskThread(const std::string& what);  // what: names the thread if it cannot be started
  // If tasks remain, an error is being thrown. They may wait forever for an exchange with other processes, so the thread is not joined
  // then, and tasks must own all that they use.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  void add(std::function<void()> task);
  void wait();                   // for all tasks; throws what one of them has thrown
  static bool is_left_behind();  // whether a thread was not joined

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace heed
