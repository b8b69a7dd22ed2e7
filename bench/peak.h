// The measured peak of the machine, the reference for all results.
#pragma once

#include <algorithm>

#include "bench/bench.h"

namespace heed::bench {

// McCalpin's STREAM: y = a; y = s a; y = s a + b. non_temporal: a copy with non-temporal stores, which bypass the caches.
enum class Stream { copy, scale, triad, non_temporal };

inline int arrays(Stream kind) { return kind == Stream::triad ? 3 : 2; }  // read or written per pass

Call stream_call(Stream kind, int64_t count);  // one pass over arrays of `count` floats, all threads

struct Peak {
  double one_thread = 0, flops = 0;                         // multiply-adds in registers, two operations each, per second
  double copy = 0, scale = 0, triad = 0, non_temporal = 0;  // bytes per second over arrays larger than the caches
  double bytes() const { return std::max({copy, scale, triad}); }
};

Peak measure_peak();

}  // namespace heed::bench
