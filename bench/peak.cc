// Memory streams, and the peak of compute and bandwidth.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <hwy/aligned_allocator.h>
#include <unistd.h>

#include <memory>

#include "bench/peak.h"
#include "bench/timing.h"
#include "heed/core/parallel.h"
#include "heed/core/peak.h"

HWY_BEFORE_NAMESPACE();
namespace heed::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using heed::HWY_NAMESPACE::FloatTag;
using heed::HWY_NAMESPACE::lane_count;
using heed::HWY_NAMESPACE::Lanes;

// Pointers are aligned and the count is a multiple of the lanes.
void stream(Stream kind, const float* a, const float* b, float* y, int64_t count) {
  const Lanes factor(3.0f);
  const auto each = [&](auto&& body) HWY_ATTR {
    for (int64_t i = 0, lanes = lane_count(); i < count; i += lanes) body(i);
  };
  switch (kind) {
    case Stream::copy: return each([&](int64_t i) HWY_ATTR { Lanes::load(a + i).store(y + i); });
    case Stream::scale: return each([&](int64_t i) HWY_ATTR { (factor * Lanes::load(a + i)).store(y + i); });
    case Stream::triad: return each([&](int64_t i) HWY_ATTR { fma(factor, Lanes::load(a + i), Lanes::load(b + i)).store(y + i); });
    case Stream::non_temporal: return each([&](int64_t i) HWY_ATTR { hn::Stream(Lanes::load(a + i).v, FloatTag(), y + i); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::bench {

HWY_EXPORT(stream);

namespace {

constexpr int kTries = 15;  // best of these: other load only makes it slower

double bytes_per_second(Stream kind) {
  const int64_t cache =
      std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));  // arrays of this many floats are four times the cache
  const int64_t count = std::clamp<int64_t>(cache / 4096 * 4096, 1 << 24, 1 << 27);
  const Call call = stream_call(kind, count);
  double best = 0;
  for (int i = 0; i < kTries; ++i) best = std::max(best, 4.0 * arrays(kind) * static_cast<double>(count) / seconds_of(call));
  return best;
}

}  // namespace

Call stream_call(Stream kind, int64_t count) {
  constexpr int64_t kGrain = 1 << 14;
  const auto array = [count] { return std::shared_ptr<float[]>(hwy::MakeUniqueAlignedArray<float>(static_cast<size_t>(count))); };
  const std::shared_ptr<float[]> a = array(), b = kind == Stream::triad ? array() : nullptr, y = array();
  return [=] {
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(stream)(kind, a.get() + begin, b ? b.get() + begin : nullptr, y.get() + begin, end - begin);
    });
  };
}

Peak measure_peak() {
  Peak peak;
  const int threads = thread_count();
  set_thread_count(1);
  peak.one_thread = peak_flops();
  set_thread_count(threads);
  peak.flops = peak_flops();
  peak.copy = bytes_per_second(Stream::copy);
  peak.scale = bytes_per_second(Stream::scale);
  peak.triad = bytes_per_second(Stream::triad);
  peak.non_temporal = bytes_per_second(Stream::non_temporal);
  return peak;
}

}  // namespace heed::bench
#endif
