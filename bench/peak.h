// What this machine can do at most, measured: the yardstick that every result is held against.
#pragma once

#include <algorithm>

#include "bench/bench.h"

namespace heed::bench {

// McCalpin's STREAM: y = a; y = s a; y = s a + b. `around` is a copy whose stores go around the caches.
enum class Stream { copy, scale, triad, around };

inline int arrays(Stream kind) { return kind == Stream::triad ? 3 : 2; }  // read or written by one pass

Call stream_call(Stream kind, int64_t count);  // one pass over arrays of `count` floats, all threads

struct Peak {
  double one_thread = 0, flops = 0;                   // multiply-adds in registers, two operations each, per second
  double copy = 0, scale = 0, triad = 0, around = 0;  // bytes per second over arrays that no cache holds
  double bytes() const { return std::max({copy, scale, triad}); }
};

Peak measure_peak();

}  // namespace heed::bench
