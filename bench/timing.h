// Timing of a call: warm up, then the median of many repetitions.
#pragma once

#include <chrono>
#include <vector>

#include "bench/bench.h"

namespace heed::bench {

template <class Body>
double seconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values);

// A warmed-up call. peers.py does the same with the same constants.
class Timed {
 public:
  explicit Timed(Call call);      // warms up for 20 ms
  double round(double duration);  // 5 ms warm-up, then `duration` seconds or three repetitions (long calls: one): median seconds per call

 private:
  double run(double duration, int64_t least) const;  // mean seconds per call

  Call call_;
  int64_t batch_ = 1;  // calls per reading of the clock
  bool long_ = false;  // one call is a round, without warm-up
};

}  // namespace heed::bench
