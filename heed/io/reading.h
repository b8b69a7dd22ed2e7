// Long reads say how far they are, so that a terminal can show it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace heed {

// share: of the work, 0 to 1; 1: the read is over. Nobody is asked unless a program sets this.
using ReadReport = std::function<void(const std::string& what, double share)>;
void set_read_report(ReadReport report);

// Reports a read that takes longer than `patience`, some times a second.
class Reading {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Reading(std::string what, int64_t total, Clock::duration patience = std::chrono::seconds(1));
  ~Reading();  // reports the end where anything was reported
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  void at(int64_t done);  // of total; cheap enough to be called for every row

 private:
  const std::string what_;
  const int64_t total_;
  Clock::time_point next_;
  int64_t calls_ = 0;
  bool reported_ = false;
};

}  // namespace heed
