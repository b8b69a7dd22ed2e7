// Signal handling while a command runs.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>

namespace heed::cli {

// Catches SIGINT, SIGTERM, SIGHUP and SIGUSR1, which batch systems send and mpirun passes on, except those ignored when the process started
// (nohup). By default each of them exits the program
// immediately. After save_first() the first signal only makes stop_requested() true, and the second one exits. Temporary folders are
// removed in both cases. A thread waits for the signals, so no handler interrupts a kernel.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  void save_first() { save_first_ = true; }
  bool stop_requested() const { return stop_requested_; }

 private:
  void wait();

  sigset_t signals_, old_mask_;
  std::atomic<bool> save_first_ = false, stop_requested_ = false, done_ = false;
  std::thread thread_;
};

}  // namespace heed::cli
