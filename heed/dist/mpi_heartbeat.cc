#include "heed/dist/mpi_heartbeat.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "heed/core/parse.h"
#include "heed/core/thread.h"
#include "heed/dist/launcher.h"

namespace heed {
namespace {

using BeatClock = std::chrono::steady_clock;

double silence_limit() {
  const char* const set = std::getenv("HEED_PROCESS_TIMEOUT");
  if (set == nullptr || *set == '\0') return 20;
  const std::optional<double> seconds = parse_number<double>(set);
  check<UsageError>(seconds && *seconds >= 0, "HEED_PROCESS_TIMEOUT is '", set, "', expected seconds, or 0 to wait for ever");
  return *seconds;
}

}  // namespace

Heartbeat::Heartbeat(const Group& group) : group_(group), limit_(silence_limit()) {
  MPI_Comm_dup(MPI_COMM_WORLD, &messages_);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the other threads
  thread_ = start_thread("the thread that watches the other processes", [this] { beat(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Heartbeat::~Heartbeat() {
  done_ = true;
  thread_.join();
}

void Heartbeat::beat() {
  constexpr auto pause = std::chrono::milliseconds(100);
  const int next = (group_.rank() + 1) % group_.size(), previous = (group_.rank() + group_.size() - 1) % group_.size();
  char sent = 0, received = 0;
  MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
  MPI_Irecv(&received, 1, MPI_CHAR, previous, 0, messages_, &receiving);
  double silence = 0, since_sent = 1;
  for (BeatClock::time_point last = BeatClock::now(); !done_; std::this_thread::sleep_for(pause)) {
    // Time that this process itself was stopped does not count.
    const BeatClock::time_point now = BeatClock::now();
    const double passed = std::min(std::chrono::duration<double>(now - last).count(), 1.0);
    last = now;
    silence += passed;
    since_sent += passed;
    int complete = 0;
    MPI_Test(&sending, &complete, MPI_STATUS_IGNORE);
    if (complete && since_sent >= 1) {
      MPI_Isend(&sent, 1, MPI_CHAR, next, 0, messages_, &sending);
      since_sent = 0;
    }
    MPI_Test(&receiving, &complete, MPI_STATUS_IGNORE);
    if (complete) {
      silence = 0;
      MPI_Irecv(&received, 1, MPI_CHAR, previous, 0, messages_, &receiving);
    }
    if (limit_ == 0 || silence < limit_) continue;
    const std::string message = "heed: " + group_.name_of(previous) + " has sent no heartbeat for " + std::to_string(std::lround(silence)) +
                                " s: it hangs, was stopped or cannot be reached. All processes end; the last checkpoint is complete\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
    abort_processes(1);
  }
  MPI_Cancel(&receiving);
  MPI_Wait(&receiving, MPI_STATUS_IGNORE);
}

}  // namespace heed
