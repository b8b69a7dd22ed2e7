// How gradients are cut for sending.
#pragma once

#include <cstdint>

namespace heed {

// Small enough that much is sent before backward ends, large enough that latencies do not count.
inline constexpr int64_t kBucketBytes = int64_t{8} << 20;

}  // namespace heed
