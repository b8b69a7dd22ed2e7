// Numbers added to scores: any tensor, and a slope for every head.
#ifndef HEED_ATTENTION_TERMS_BIAS_H_
#define HEED_ATTENTION_TERMS_BIAS_H_

#include "heed/attention/term.h"

namespace heed {

struct Bias {  // + values[b, h, i, j]; -infinity masks
  static constexpr const char* name = "Bias";
  Tensor values;  // f32, broadcasts to (B, H, N, M); learned if it requires a gradient
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"values", values, {z.B, z.H, z.N, z.M}, Sums::map, DType::f32, true}};
  }
};

struct Alibi {  // - slopes[h] |i - j|: Press et al. 2022
  static constexpr const char* name = "Alibi";
  Tensor slopes;  // (H), learned
  std::vector<TermTensor> tensors(const AttentionSizes& z) { return {{"slopes", slopes, {z.H}, Sums::numbers}}; }
};

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_BIAS_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_BIAS_FORMULAS
#undef HEED_ATTENTION_TERMS_BIAS_FORMULAS
#else
#define HEED_ATTENTION_TERMS_BIAS_FORMULAS
#endif
#include "heed/attention/term_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

inline InitialScores initial_scores(const Bias& t, const AttentionSizes& z, const ScoreBlock& x, int64_t columns) {
  if (same_for_all_keys(t.values) || x.j0 + columns > z.M) return {};
  return {broadcast_row<float>(t.values, {x.b, x.h, x.i0, x.first}) + x.j0, t.values.shape()[2] == 1 ? 0 : t.values.strides()[2]};
}
template <class Load>
HWY_INLINE Lanes score(const Bias& t, Lanes s, ScoreRow row, int64_t j, const Load& load) {
  const float* from = broadcast_row<float>(t.values, row);
  return s + (same_for_all_keys(t.values) ? Lanes(*from) : load(from + j));
}
// The sink is this head's (N, M) map.
inline void block_gradient(const Bias&, float* const* sinks, const AttentionSizes& z, const ScoreBlock& x, const float* ds,
                           int64_t stride) {
  for (int64_t i = x.i0; i < x.i1; ++i) std::copy_n(ds + (i - x.i0) * stride, x.keys(), sinks[0] + (i - x.first) * z.M + x.j0);
}

template <class Load>
HWY_INLINE Lanes score(const Alibi& t, Lanes s, ScoreRow row, int64_t j, const Load&) {
  return s - raw<float>(t.slopes)[row.h] * abs(keys_from(j) - Lanes(static_cast<float>(row.i)));
}
inline HWY_ATTR void block_gradient(const Alibi&, float* const* sinks, const AttentionSizes&, const ScoreBlock& x, const float* ds,
                                    int64_t stride) {
  Lanes sum = Lanes::load(sinks[0]);
  for (int64_t i = x.i0; i < x.i1; ++i) {
    const float* row = ds + (i - x.i0) * stride;
    for (int64_t j = 0; j < x.keys(); j += lane_count())
      sum = fma(-Lanes::load(row + j), abs(keys_from(x.j0 + j) - Lanes(static_cast<float>(i))), sum);
  }
  sum.store(sinks[0]);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
