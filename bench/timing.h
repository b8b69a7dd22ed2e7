// How a call is timed: warm up, then the median of many repetitions.
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

// A call made ready. peers.py does the same with the same numbers.
class Timed {
 public:
  explicit Timed(Call call);      // runs it for 20 ms
  double round(double duration);  // 5 ms unmeasured, then `duration` seconds or three times (long calls: once): median seconds of one call

 private:
  double run(double duration, int64_t least) const;  // seconds of a call, on average

  Call call_;
  int64_t batch_ = 1;  // calls between two looks at the clock
  bool long_ = false;  // one call is a round, and needs no other to warm it up
};

}  // namespace heed::bench
