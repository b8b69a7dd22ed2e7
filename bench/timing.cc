// Repetitions, batches and medians.
#include "bench/timing.h"

#include <algorithm>
#include <cmath>

namespace heed::bench {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Timed::Timed(Call call) : call_(std::move(call)) {
  constexpr double kWarmUp = 20e-3, kBatch = 50e-6, kLong = 0.5;
  const double once = run(kWarmUp, 2);
  long_ = once > kLong;
  batch_ = std::max<int64_t>(1, std::llround(kBatch / once));
}

double Timed::run(double duration, int64_t least) const {
  double spent = 0;
  int64_t calls = 0;
  for (; calls < least || spent < duration; ++calls) spent += seconds_of(call_);
  return spent / static_cast<double>(calls);
}

double Timed::round(double duration) {
  constexpr double kWarmUp = 5e-3;
  if (!long_) run(kWarmUp, 1);
  std::vector<double> times;
  const size_t least = long_ ? 1 : 3;
  for (double spent = 0; spent < duration || times.size() < least;) {
    const double time = seconds_of([&] {
      for (int64_t i = 0; i < batch_; ++i) call_();
    });
    spent += time;
    times.push_back(time / static_cast<double>(batch_));
  }
  return median(std::move(times));
}

}  // namespace heed::bench
