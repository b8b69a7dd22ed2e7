// Learned relative positions: a bias for every distance, per head (Shaw et al. 2018, Raffel et al. 2020).
#ifndef HEED_ATTENTION_TERMS_RELATIVE_BIAS_H_
#define HEED_ATTENTION_TERMS_RELATIVE_BIAS_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct RelativeBiasArgs {
  const float* table;  // (H, width)
  int64_t width;       // 2 R + 1
};
HEED_HOST_DEVICE inline int64_t table_size(const RelativeBiasArgs& t) { return t.width; }  // of a head
HEED_HOST_DEVICE inline int64_t table_entry(const RelativeBiasArgs& t, int64_t i, int64_t j) {
  return clamp_index(j - i + t.width / 2, 0, t.width - 1);
}

#ifndef __CUDACC__
struct RelativeBias {  // + table[h, clamp(j - i, -R, R) + R]
  static constexpr const char* name = "RelativeBias";
  Tensor table;  // (H, 2 R + 1), learned
  std::vector<TermTensor> tensors(const AttentionSizes& z) { return {{"table", table, {z.H, last_of(table)}, Sums::table}}; }
  void check_sizes(const AttentionSizes&) const {
    check(table.size(1) % 2 == 1, "attention: RelativeBias' table has ", table.size(1), " columns, expected an odd number, 2 R + 1");
  }
  static TermInfo info() {
    const auto all_distances = [](const TermPlace& place, const TermValues&) { return std::max<double>(place.tokens - 1, 1); };
    return {.name = "relative",
            .aliases = {"relative_bias"},
            .summary = "adds a learned bias per head and distance, up to reach",
            .source = "Shaw et al. 2018",
            .use = TermUse::position,
            .settings = {{"reach", "largest distance with its own bias; by default that of all tokens", all_distances, 1}},
            .parameters = {{"table", "relative_table", "add relative_table[h, clamp(j - i, -reach, reach) + reach]", {{1, 2, "reach"}}}}};
  }
  static RelativeBias make(const TermInput& in) { return {in.tensors[0]}; }
  RelativeBiasArgs args() const { return {raw<float>(table), table.shape()[1]}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V, class Load>
HEED_ELEMENT V score(const RelativeBiasArgs& t, V s, const ScoreRow& row, Keys<V> j, const Load& load) {
  const float* table = t.table + row.h * t.width;
  const int64_t shift = t.width / 2 - row.i, at = j.first + shift, last = t.width - 1;
  if (at >= 0 && at + lane_count(j) <= t.width) return s + load(table + at);  // entries are consecutive except at the ends of the table
  return s + from_each(j, [=](int64_t key) { return table[clamp_index(key + shift, 0, last)]; });
}
#endif

#ifdef HEED_TERM_BLOCKS
// One row of the table serves all queries; each starts one number earlier than the previous one.
inline InitialScores initial_scores(const RelativeBiasArgs& t, const AttentionSizes&, const ScoreBlock& x, int64_t columns) {
  const int64_t at = x.j0 - x.i0 + t.width / 2;
  if (at - x.rows() + 1 < 0 || at + columns > t.width) return {};  // beyond its ends
  return {t.table + x.h * t.width + at, -1};
}
inline HWY_ATTR void block_gradient(const RelativeBiasArgs& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x,
                                    const float* ds, int64_t stride) {
  const int64_t reach = t.width / 2, last = t.width - 1, lanes = lane_count();
  for_diagonals(x, ds, stride, [&](int64_t distance, Lanes total) HEED_LANES {
    float* to = sinks[0] + distance + reach;
    if (distance >= -reach && distance + lanes <= t.width - reach) return (Lanes::load(to) + total).store(to);
    HWY_ALIGN float values[kLanes];
    hn::Store(total.v, FloatTag(), values);
    for (int64_t lane = 0; lane < lanes; ++lane) sinks[0][clamp_index(distance + lane + reach, 0, last)] += values[lane];
  });
}
#endif
