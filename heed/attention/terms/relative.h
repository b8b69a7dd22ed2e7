// Learned relative positions: a number for every distance, per head (Shaw et al. 2018, Raffel et al. 2020).
#ifndef HEED_ATTENTION_TERMS_RELATIVE_H_
#define HEED_ATTENTION_TERMS_RELATIVE_H_

#include "heed/attention/term.h"

namespace heed {

struct RelativeBias {  // + table[h, clamp(j - i, -R, R) + R]
  static constexpr const char* name = "RelativeBias";
  Tensor table;  // (H, 2 R + 1), learned
  std::vector<TermTensor> tensors(const AttentionSizes& z) { return {{"table", table, {z.H, last_of(table)}, Sums::table}}; }
  void check_sizes(const AttentionSizes&) const {
    check(table.size(1) % 2 == 1, "attention: RelativeBias' table has ", table.size(1), " columns, expected an odd number, 2 R + 1");
  }
};

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_RELATIVE_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_RELATIVE_FORMULAS
#undef HEED_ATTENTION_TERMS_RELATIVE_FORMULAS
#else
#define HEED_ATTENTION_TERMS_RELATIVE_FORMULAS
#endif
#include "heed/attention/term_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Lanes of a clamped table are consecutive but for its ends.
template <class Load>
HWY_INLINE Lanes score(const RelativeBias& t, Lanes s, ScoreRow row, int64_t j, const Load& load) {
  const int64_t width = t.table.shape()[1], reach = width / 2, at = j - row.i + reach, lanes = lane_count();
  const float* table = raw<float>(t.table) + row.h * width;
  if (at >= 0 && at + lanes <= width) return s + load(table + at);
  HWY_ALIGN float values[kLanes];
  for (int64_t lane = 0; lane < lanes; ++lane) values[lane] = table[std::clamp<int64_t>(at + lane, 0, width - 1)];
  return s + hn::Load(FloatTag(), values);
}
// Diagonals of the block are summed in registers: lane l of `first` holds distance first + l.
inline HWY_ATTR void block_gradient(const RelativeBias& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x, const float* ds,
                                    int64_t stride) {
  const int64_t width = t.table.shape()[1], reach = width / 2, lanes = lane_count(), rows = x.rows(), keys = x.keys();
  for (int64_t first = 1 - rows; first < keys; first += lanes) {  // column - row within the block
    Lanes sum[2] = {0, 0};
    const int64_t begin = std::max<int64_t>(0, 1 - first - lanes), end = std::min(rows, keys - first);
    int64_t r = begin;
    for (; r + 2 <= end; r += 2)
      for (int64_t half = 0; half < 2; ++half) sum[half] = sum[half] + Lanes::load(ds + (r + half) * stride + first + r + half);
    if (r < end) sum[0] = sum[0] + Lanes::load(ds + r * stride + first + r);
    const Lanes total = sum[0] + sum[1];
    const int64_t at = first + x.j0 - x.i0 + reach;
    if (at >= 0 && at + lanes <= width) {
      (Lanes::load(sinks[0] + at) + total).store(sinks[0] + at);
    } else {
      HWY_ALIGN float values[kLanes];
      hn::Store(total.v, FloatTag(), values);
      for (int64_t lane = 0; lane < lanes; ++lane) sinks[0][std::clamp<int64_t>(at + lane, 0, width - 1)] += values[lane];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
