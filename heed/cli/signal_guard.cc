#include "heed/cli/signal_guard.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "heed/core/thread.h"
#include "heed/io/temporary.h"

namespace heed::cli {
namespace {

constexpr std::array kStopSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

}  // namespace

SignalGuard::SignalGuard() {
  sigemptyset(&signals_);
  for (const int number : kStopSignals) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&signals_, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &old_mask_);
  try {
    thread_ = start_thread("the thread that waits for Ctrl-C", [this] { wait(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
    throw;
  }
}

SignalGuard::~SignalGuard() {
  done_ = true;
  for (const int number : kStopSignals)
    if (sigismember(&signals_, number)) pthread_kill(thread_.native_handle(), number);  // wakes it up
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void SignalGuard::wait() {
  using Clock = std::chrono::steady_clock;
  // Some programs, for example timeout(1), send a signal twice in quick succession.
  constexpr auto double_signal = std::chrono::milliseconds(50);
  const timespec interval{.tv_sec = 0, .tv_nsec = 100'000'000};
  Clock::time_point first = {};
  while (!done_) {
    if (sigtimedwait(&signals_, nullptr, &interval) <= 0 || done_) continue;
    if (stop_requested_ && Clock::now() - first < double_signal) continue;
    if (stop_requested_ || !save_first_) {
      remove_temporary_folders();
      unlink_temporaries();
      _exit(130);
    }
    stop_requested_ = true;
    first = Clock::now();
  }
}

}  // namespace heed::cli
