// Relative positions in buckets that widen with the distance, one bias per bucket and head (Raffel et al. 2020, T5).
#ifndef HEED_ATTENTION_TERMS_BUCKETED_BIAS_H_
#define HEED_ATTENTION_TERMS_BUCKETED_BIAS_H_

#include <cmath>

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct BucketedBiasArgs {
  const float* table;  // (H, size)
  int64_t size;        // buckets in all
  int64_t far;
  float log_far;  // log(far / buckets with one distance each)
  bool both_ways;
};
HEED_HOST_DEVICE inline int64_t table_size(const BucketedBiasArgs& t) { return t.size; }  // of a head

// The nearest distances have a bucket each, the others grow by a factor.
HEED_HOST_DEVICE inline int64_t table_entry(const BucketedBiasArgs& t, int64_t i, int64_t j) {
  const int64_t distance = j - i, buckets = t.both_ways ? t.size / 2 : t.size, near = buckets / 2;
  const int64_t start = t.both_ways && distance > 0 ? buckets : 0, size = distance < 0 ? -distance : t.both_ways ? distance : 0;
  if (size < near) return start + size;
  if (size >= t.far) return start + buckets - 1;  // most of a long sequence: no logarithm
  const float grown = std::log(static_cast<float>(size) / static_cast<float>(near)) / t.log_far * static_cast<float>(buckets - near);
  const int64_t bucket = near + static_cast<int64_t>(grown);
  return start + (bucket < buckets - 1 ? bucket : buckets - 1);
}

#ifndef __CUDACC__
struct BucketedBias {  // + table[h, bucket(j - i)]
  static constexpr const char* name = "BucketedBias";
  Tensor table;           // (H, buckets), learned
  bool both_ways = true;  // half of the buckets for keys after the query; else those share the bucket of distance 0
  int64_t far = 128;      // distances from here on share the last bucket
  std::vector<TermTensor> tensors(const AttentionSizes& z) { return {{"table", table, {z.H, last_of(table)}, Sums::table}}; }
  void check_sizes(const AttentionSizes&) const {
    const int64_t buckets = table.size(1) / (both_ways ? 2 : 1);
    check(buckets >= 2 && far > buckets / 2 && (!both_ways || table.size(1) % 2 == 0), "attention: BucketedBias of ", table.size(1),
          " buckets up to distance ", far, ", expected at least 2 a side, and half of them below that distance");
  }
  static TermInfo info() {
    return {.name = "bucketed",
            .aliases = {"bucketed_bias", "t5"},
            .summary = "adds a learned bias per head and bucket of distances; buckets widen with the distance",
            .source = "Raffel et al. 2020",
            .use = TermUse::position,
            .settings = {{"buckets", "number of buckets per head", 32, 2},
                         {"far", "all distances from here on share the last bucket", 128, 2},
                         {"both_ways", "half of the buckets are for keys after the query", 1, 0, TermSetting::Type::flag}},
            .parameters = {{"table", "bucket_table", "add bucket_table[h, bucket of j - i]", {{0, 1, "buckets"}}}}};
  }
  static BucketedBias make(const TermInput& in) { return {in.tensors[0], in.values.at("both_ways") != 0, in.whole("far")}; }
  BucketedBiasArgs args() const {
    const int64_t size = table.shape()[1], near = size / (both_ways ? 2 : 1) / 2;
    const double growth = static_cast<double>(far) / static_cast<double>(near);
    return {raw<float>(table), size, far, static_cast<float>(std::log(growth)), both_ways};
  }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V, class Load>
HEED_ELEMENT V score(const BucketedBiasArgs& t, V s, const ScoreRow& row, Keys<V> j, const Load&) {
  const float* table = t.table + row.h * t.size;
  return s + from_each(j, [&](int64_t key) { return table[table_entry(t, row.i, key)]; });
}
#endif

#ifdef HEED_TERM_BLOCKS
inline HWY_ATTR void block_score(const BucketedBiasArgs& t, const ScoreBlock& x, float* s, int64_t stride) {
  std::vector<float> line(static_cast<size_t>(distance_count(x)));
  const float* table = t.table + x.h * t.size;
  for (size_t n = 0; n < line.size(); ++n) line[n] = table[table_entry(t, 0, first_distance(x) + static_cast<int64_t>(n))];
  add_line(x, line.data(), s, stride);
}
inline HWY_ATTR void block_gradient(const BucketedBiasArgs& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x,
                                    const float* ds, int64_t stride) {
  for_diagonals(x, ds, stride, [&](int64_t distance, Lanes total) HEED_LANES {
    HWY_ALIGN float values[kLanes];
    hn::Store(total.v, FloatTag(), values);
    for (int64_t lane = 0; lane < lane_count(); ++lane) sinks[0][table_entry(t, 0, distance + lane)] += values[lane];
  });
}
#endif
