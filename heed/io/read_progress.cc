#include "heed/io/read_progress.h"

#include <algorithm>

namespace heed {
namespace {

ReadProgressCallback& progress_callback() {
  static ReadProgressCallback callback;
  return callback;
}

}  // namespace

void set_read_progress_callback(ReadProgressCallback callback) { progress_callback() = std::move(callback); }

ReadProgress::ReadProgress(std::string what, int64_t total, Clock::duration delay)
    : what_(std::move(what)), total_(std::max<int64_t>(total, 1)), next_(Clock::now() + delay) {}

ReadProgress::~ReadProgress() {
  if (reported_ && progress_callback()) progress_callback()(what_, 1);
}

void ReadProgress::at(int64_t done) {
  if (!progress_callback() || calls_++ % 16 != 0) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  reported_ = true;
  progress_callback()(what_, std::min(static_cast<double>(done) / static_cast<double>(total_), 0.99));
}

}  // namespace heed
