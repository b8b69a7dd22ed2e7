// ALiBi: a penalty that grows linearly with the distance (Press et al. 2022).
#ifndef HEED_ATTENTION_TERMS_ALIBI_H_
#define HEED_ATTENTION_TERMS_ALIBI_H_

#include <bit>

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct AlibiArgs {
  static constexpr int sums = 1, totals = 1;  // numbers that add_gradient sums, numbers of the parameters of a head
  const float* slopes;                        // (H)
};

#ifndef __CUDACC__
// 2^(-8 h / H) for h = 1 ... H if H is a power of two; otherwise the slopes of the next lower power, then every other slope of
// the next higher power. -> (H)
inline Tensor alibi_slopes(int64_t heads) {
  check(heads >= 1, "alibi_slopes: ", heads, " heads, expected 1 or more");
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  for (int64_t h = 0; h < heads; ++h) {
    const double step = h < below ? static_cast<double>(h + 1) : static_cast<double>(h - below) + 0.5;
    slopes.push_back(static_cast<float>(std::exp2(-8 * step / static_cast<double>(below))));
  }
  return Tensor::from(slopes, {heads}, kCpu);
}

struct Alibi {  // - slopes[h] |i - j|
  static constexpr const char* name = "Alibi";
  Tensor slopes;  // (H), learned
  std::vector<TermTensor> tensors(const AttentionSizes& z) { return {{"slopes", slopes, {z.H}, Sums::numbers}}; }
  static TermInfo info() {
    return {.name = "alibi",
            .summary = "subtracts slope |i - j|, a fixed slope per head",
            .source = "Press et al. 2022",
            .use = TermUse::position,
            .parameters = {{.name = "slopes",
                            .file_name = "slopes",
                            .meaning = "add -slopes[h] |i - j|",
                            .initial = [](const Shape& shape, Rng&) { return alibi_slopes(shape[0]); },
                            .learned = false}}};
  }
  static Alibi make(const TermInput& in) { return {in.tensors[0]}; }
  AlibiArgs args() const { return {raw<float>(slopes)}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT V distance(const AlibiArgs&, const ScoreRow& row, Keys<V> j) {
  return abs(numbers(j) - V(static_cast<float>(row.i)));
}
template <class V, class Load>
HEED_ELEMENT V score(const AlibiArgs& t, V s, const ScoreRow& row, Keys<V> j, const Load&) {
  return s - V(t.slopes[row.h]) * distance(t, row, j);
}
template <class V>
HEED_ELEMENT void add_gradient(const AlibiArgs& t, V* sums, V ds, const ScoreRow& row, Keys<V> j) {
  sums[0] = fma(-ds, distance(t, row, j), sums[0]);
}
template <class V>
HEED_ELEMENT void finish_gradient(const AlibiArgs&, int64_t, const V* sums, V* totals) {
  totals[0] = totals[0] + sums[0];
}
#endif

#ifdef HEED_TERM_BLOCKS
inline HWY_ATTR void block_gradient(const AlibiArgs& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x, const float* ds,
                                    int64_t stride) {
  Lanes sum = Lanes::load(sinks[0]);
  for (int64_t i = x.i0; i < x.i1; ++i) {
    const float* row = ds + (i - x.i0) * stride;
    for (int64_t j = 0; j < x.keys(); j += lane_count())
      add_gradient(t, &sum, Lanes::load(row + j), {x.b, x.h, i, x.first}, Keys<Lanes>{x.j0 + j});
  }
  sum.store(sinks[0]);
}
#endif
