// The peak of multiply-adds in registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/core/peak.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/core/peak.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Twelve sums that do not wait for one another hide the latency of every multiply-add unit known to us and still leave
// registers for the factors where there are only sixteen.
inline constexpr int kSums = 12;

// Returns the operations done. `sink` takes a value that depends on all of them.
double multiply_adds(int64_t steps, float* sink) {
  const Lanes a(0.5f), b(1.0f);
  Lanes sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = Lanes(i);
  for (int64_t step = 0; step < steps; ++step)
    for (int i = 0; i < kSums; ++i) sums[i] = fma(sums[i], a, b);
  for (int i = 1; i < kSums; ++i) sums[0] = sums[0] + sums[i];
  *sink = sum(sums[0]);
  return 2.0 * kSums * static_cast<double>(steps * lane_count());
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(multiply_adds);

double peak_flops(int tries) {
  using Clock = std::chrono::steady_clock;
  const int cores = static_cast<int>(std::thread::hardware_concurrency()),
            used = cores > 0 ? std::min(thread_count(), cores) : thread_count();
  const int64_t tasks = 16 * used;
  std::vector<double> rates(static_cast<size_t>(tasks * tries));
  std::vector<float> sinks(static_cast<size_t>(tasks));
  for (int64_t i = 0; i < tries; ++i)
    parallel_tasks(tasks, [&](int64_t task) {
      const Clock::time_point start = Clock::now();
      const double done = HWY_DYNAMIC_DISPATCH(multiply_adds)(100'000, &sinks[static_cast<size_t>(task)]);
      rates[static_cast<size_t>(i * tasks + task)] = done / std::chrono::duration<double>(Clock::now() - start).count();
    });
  // Slower ones began cold or had to wait for other programs. The quickest ran while the other half of their core had nothing to do.
  const auto upper_quartile = rates.end() - std::ssize(rates) / 4 - 1;
  std::nth_element(rates.begin(), upper_quartile, rates.end());
  return *upper_quartile * used;
}

}  // namespace heed
#endif
