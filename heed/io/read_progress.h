// Progress of long reads, for the terminal.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace heed {

// share: 0 to 1; 1: finished. No progress is reported unless a program sets a callback.
using ReadProgressCallback = std::function<void(const std::string& what, double share)>;
void set_read_progress_callback(ReadProgressCallback report);

// Reports progress a few times per second, once a read takes longer than `delay`.
class ReadProgress {
 public:
  using Clock = std::chrono::steady_clock;
  explicit ReadProgress(std::string what, int64_t total, Clock::duration delay = std::chrono::seconds(1));
  ~ReadProgress();  // reports the end if anything was reported
  ReadProgress(const ReadProgress&) = delete;
  ReadProgress& operator=(const ReadProgress&) = delete;

  void at(int64_t done);  // cheap enough to call for every row

 private:
  const std::string what_;
  const int64_t total_;
  Clock::time_point next_;
  int64_t calls_ = 0;
  bool reported_ = false;
};

}  // namespace heed
