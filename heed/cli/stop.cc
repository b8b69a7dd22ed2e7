#include "heed/cli/stop.h"

#include <unistd.h>

#include <chrono>

#include "heed/core/thread.h"
#include "heed/io/temporary.h"

namespace heed::cli {

CatchStop::CatchStop() {
  sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&signals_, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  try {
    waiting_ = start_thread("the thread that waits for Ctrl-C", [this] { wait(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw;
  }
}

CatchStop::~CatchStop() {
  over_ = true;
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (sigismember(&signals_, number)) pthread_kill(waiting_.native_handle(), number);  // wakes it up
  waiting_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void CatchStop::wait() {
  using Clock = std::chrono::steady_clock;
  // Programs that end others, timeout(1) for one, may send a signal twice at once.
  constexpr auto same = std::chrono::milliseconds(50);
  const timespec tenth{.tv_sec = 0, .tv_nsec = 100'000'000};
  Clock::time_point first = {};
  while (!over_) {
    if (sigtimedwait(&signals_, nullptr, &tenth) <= 0 || over_) continue;
    if (asked_ && Clock::now() - first < same) continue;
    if (asked_ || !save_first_) {
      remove_temporary_folders();
      unlink_temporaries();
      _exit(130);
    }
    asked_ = true;
    first = Clock::now();
  }
}

}  // namespace heed::cli
