// Relative positions in buckets that widen with the distance, one number per bucket and head (Raffel et al. 2020, T5).
#ifndef HEED_ATTENTION_TERMS_BUCKETED_H_
#define HEED_ATTENTION_TERMS_BUCKETED_H_

#include <algorithm>
#include <cmath>

#include "heed/attention/term.h"

namespace heed {

struct BucketedBias {  // + table[h, bucket(j - i)]
  static constexpr const char* name = "BucketedBias";
  Tensor table;           // (H, buckets), learned
  bool both_ways = true;  // half of the buckets for keys behind the query; else those share the bucket of distance 0
  int64_t far = 128;      // from this distance on everything falls into the last bucket
  std::vector<TermTensor> tensors(const AttentionSizes& z) { return {{"table", table, {z.H, last_of(table)}, Sums::table}}; }
  void check_sizes(const AttentionSizes&) const {
    const int64_t buckets = table.size(1) / (both_ways ? 2 : 1);
    check(buckets >= 2 && far > buckets / 2 && (!both_ways || table.size(1) % 2 == 0), "attention: BucketedBias of ", table.size(1),
          " buckets up to distance ", far, ", expected at least 2 a side, and half of them below that distance");
  }
  // The nearest distances have a bucket each, the others grow by a factor.
  int64_t bucket(int64_t distance) const {
    const int64_t buckets = table.size(1) / (both_ways ? 2 : 1), near = buckets / 2;
    const int64_t start = both_ways && distance > 0 ? buckets : 0, size = both_ways ? std::abs(distance) : std::max<int64_t>(-distance, 0);
    if (size < near) return start + size;
    if (size >= far) return start + buckets - 1;  // most of a long sequence: no logarithm
    const float grown = std::log(static_cast<float>(size) / static_cast<float>(near)) /
                        static_cast<float>(std::log(static_cast<double>(far) / static_cast<double>(near))) *
                        static_cast<float>(buckets - near);
    return start + std::min(near + static_cast<int64_t>(grown), buckets - 1);
  }
};

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_BUCKETED_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_BUCKETED_FORMULAS
#undef HEED_ATTENTION_TERMS_BUCKETED_FORMULAS
#else
#define HEED_ATTENTION_TERMS_BUCKETED_FORMULAS
#endif
#include "heed/attention/diagonal_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

inline HWY_ATTR void block_score(const BucketedBias& t, const ScoreBlock& x, float* s, int64_t stride) {
  std::vector<float> line(static_cast<size_t>(distance_count(x)));
  const float* table = raw<float>(t.table) + x.h * t.table.shape()[1];
  for (size_t n = 0; n < line.size(); ++n) line[n] = table[t.bucket(first_distance(x) + static_cast<int64_t>(n))];
  add_line(x, line.data(), s, stride);
}
inline HWY_ATTR void block_gradient(const BucketedBias& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x, const float* ds,
                                    int64_t stride) {
  for_diagonals(x, ds, stride, [&](int64_t distance, Lanes total) HEED_LANES {
    HWY_ALIGN float values[kLanes];
    hn::Store(total.v, FloatTag(), values);
    for (int64_t lane = 0; lane < lane_count(); ++lane) sinks[0][t.bucket(distance + lane)] += values[lane];
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
