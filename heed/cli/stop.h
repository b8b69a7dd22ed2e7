// Ctrl-C while a command runs.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>

namespace heed::cli {

// Catches SIGINT, SIGTERM and SIGHUP, but none that this process was begun with as ignored (nohup). At first each of them ends the program
// at once; after save_first() the first one only makes asked() true, and the second one ends the program. Temporary folders are removed
// in every case. A thread waits for the signals: no handler runs on top of a kernel.
class CatchStop {
 public:
  CatchStop();
  ~CatchStop();
  CatchStop(const CatchStop&) = delete;
  CatchStop& operator=(const CatchStop&) = delete;

  void save_first() { save_first_ = true; }
  bool asked() const { return asked_; }

 private:
  void wait();

  sigset_t signals_, before_;
  std::atomic<bool> save_first_ = false, asked_ = false, over_ = false;
  std::thread waiting_;
};

}  // namespace heed::cli
