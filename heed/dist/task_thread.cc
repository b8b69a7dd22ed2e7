#include "heed/dist/task_thread.h"

#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>

#include "heed/core/parallel.h"
#include "heed/core/thread.h"

namespace heed {
namespace {

std::atomic<bool> left_behind = false;

}  // namespace

struct TaskThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;  // the first one is running
  std::exception_ptr failure;
  bool ending = false;
};

TaskThread::TaskThread(const std::string& what) : state_(std::make_shared<State>()) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the other threads
  thread_ = start_thread(what, [state = state_] { run(state); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TaskThread::~TaskThread() {
  std::unique_lock lock(state_->mutex);
  state_->ending = true;
  const bool idle = state_->tasks.empty();
  lock.unlock();
  state_->changed.notify_all();
  if (idle) {
    thread_.join();
  } else {
    left_behind = true;
    thread_.detach();
  }
}

void TaskThread::run(const std::shared_ptr<State>& state) {
  const StayInThread stay;
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->ending || !state->tasks.empty(); });
    if (state->ending) return;
    std::function<void()> task = std::move(state->tasks.front());
    lock.unlock();
    std::exception_ptr failure;
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
    task = nullptr;  // frees what it owns
    lock.lock();
    if (failure && !state->failure) state->failure = failure;
    state->tasks.pop_front();
    state->changed.notify_all();
  }
}

void TaskThread::add(std::function<void()> task) {
  const std::lock_guard lock(state_->mutex);
  state_->tasks.push_back(std::move(task));
  state_->changed.notify_all();
}

void TaskThread::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->tasks.empty(); });
  if (const std::exception_ptr failure = std::exchange(state_->failure, nullptr)) std::rethrow_exception(failure);
}

bool TaskThread::is_left_behind() { return left_behind; }

}  // namespace heed
