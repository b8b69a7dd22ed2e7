// Training throughput.
#pragma once

#include <algorithm>
#include <chrono>

#include "heed/core/peak.h"

namespace heed {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Work done since `start`.
struct Throughput {
  Clock::time_point start = Clock::now();
  double samples = 0, multiply_adds = 0;

  void add(double more_samples, double more_multiply_adds) { samples += more_samples, multiply_adds += more_multiply_adds; }
  double samples_per_second() const { return samples / std::max(seconds_since(start), 1e-9); }
  double flops() const { return 2 * multiply_adds / std::max(seconds_since(start), 1e-9); }  // a multiply-add is two operations
};

// Peak FLOP/s of the CPU. A throughput above it means that it was measured while other processes used the machine. Not measured for
// training on GPUs: the share is 0.
class Peak {
 public:
  void measure() { flops_ = std::max(flops_, peak_flops(4)); }
  void correct(const Throughput& throughput) {
    if (flops_ > 0 && throughput.flops() > flops_) measure();
  }
  double share(const Throughput& throughput) const { return flops_ > 0 ? throughput.flops() / flops_ : 0; }

 private:
  double flops_ = 0;
};

}  // namespace heed
