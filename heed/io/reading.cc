#include "heed/io/reading.h"

#include <algorithm>

namespace heed {
namespace {

ReadReport& read_report() {
  static ReadReport report;
  return report;
}

}  // namespace

void set_read_report(ReadReport report) { read_report() = std::move(report); }

Reading::Reading(std::string what, int64_t total, Clock::duration patience)
    : what_(std::move(what)), total_(std::max<int64_t>(total, 1)), next_(Clock::now() + patience) {}

Reading::~Reading() {
  if (reported_ && read_report()) read_report()(what_, 1);
}

void Reading::at(int64_t done) {
  if (!read_report() || calls_++ % 16 != 0) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  reported_ = true;
  read_report()(what_, std::min(static_cast<double>(done) / static_cast<double>(total_), 0.99));
}

}  // namespace heed
