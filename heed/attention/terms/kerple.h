// KERPLE's logarithmic kernel: a penalty that grows with the logarithm of the distance, learned (Chi et al. 2022).
#ifndef HEED_ATTENTION_TERMS_KERPLE_H_
#define HEED_ATTENTION_TERMS_KERPLE_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct KerpleArgs {
  static constexpr int sums = 2, totals = 2;  // numbers that add_gradient sums, numbers of the parameters of a head
  const float *scale, *rate;                  // (H)
};

#ifndef __CUDACC__
struct Kerple {  // - scale[h] log(1 + rate[h] |i - j|), both counted as 0.01 where they are less, as in the authors' code
  static constexpr const char* name = "Kerple";
  Tensor scale, rate;  // (H), learned
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"scale", scale, {z.H}, Sums::numbers}, {"rate", rate, {z.H}, Sums::numbers}};
  }
  static TermInfo info() {
    const auto uniform = [](float most) { return [=](const Shape& shape, Rng& rng) { return random_uniform(shape, 0, most, rng, kCpu); }; };
    return {.name = "kerple",
            .summary = "subtracts scale log(1 + rate |i - j|), both learned per head",
            .source = "Chi et al. 2022",
            .use = TermUse::position,
            .parameters = {{"scale", "kerple_scale", "add -kerple_scale[h] log(1 + kerple_rate[h] |i - j|)", {}, uniform(2)},
                           {"rate", "kerple_rate", "of kerple_scale", {}, uniform(1)}}};
  }
  static Kerple make(const TermInput& in) { return {in.tensors[0], in.tensors[1]}; }
  KerpleArgs args() const { return {raw<float>(scale), raw<float>(rate)}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
HEED_ELEMENT float at_least_a_little(float x) { return x > 0.01f ? x : 0.01f; }
// 1 + rate |i - j|
template <class V>
HEED_ELEMENT V growth(const KerpleArgs& t, const ScoreRow& row, Keys<V> j) {
  return fma(V(at_least_a_little(t.rate[row.h])), abs(numbers(j) - V(static_cast<float>(row.i))), V(1));
}
template <class V, class Load>
HEED_ELEMENT V score(const KerpleArgs& t, V s, const ScoreRow& row, Keys<V> j, const Load&) {
  return fma(-V(at_least_a_little(t.scale[row.h])), log(growth(t, row, j)), s);
}
// Sums of ds log(growth) and of ds |i - j| / growth.
template <class V>
HEED_ELEMENT void add_gradient(const KerpleArgs& t, V* sums, V ds, const ScoreRow& row, Keys<V> j) {
  const V grown = growth(t, row, j);
  sums[0] = fma(ds, log(grown), sums[0]);
  sums[1] = fma(ds / grown, abs(numbers(j) - V(static_cast<float>(row.i))), sums[1]);
}
template <class V>
HEED_ELEMENT void finish_gradient(const KerpleArgs& t, int64_t h, const V* sums, V* totals) {
  totals[0] = totals[0] - sums[0];
  totals[1] = fma(-V(at_least_a_little(t.scale[h])), sums[1], totals[1]);
}
#endif

#ifdef HEED_TERM_BLOCKS
// One logarithm for every distance, not for every score.
inline HWY_ATTR void block_score(const KerpleArgs& t, const ScoreBlock& x, float* s, int64_t stride) {
  std::vector<float> line(static_cast<size_t>(distance_count(x) + lane_count()));
  const ScoreRow start{x.b, x.h, 0};
  for (int64_t n = 0; n < distance_count(x); n += lane_count())
    score(t, Lanes(0), start, Keys<Lanes>{first_distance(x) + n}, 0).store(line.data() + n);
  add_line(x, line.data(), s, stride);
}
inline HWY_ATTR void block_gradient(const KerpleArgs& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x, const float* ds,
                                    int64_t stride) {
  Lanes sums[] = {0, 0}, totals[] = {Lanes::load(sinks[0]), Lanes::load(sinks[1])};
  const ScoreRow start{x.b, x.h, 0};
  for_diagonals(x, ds, stride,
                [&](int64_t distance, Lanes total) HEED_LANES { add_gradient(t, sums, total, start, Keys<Lanes>{distance}); });
  finish_gradient(t, x.h, sums, totals);
  for (int n = 0; n < 2; ++n) totals[n].store(sinks[n]);
}
#endif
