// Gaussian positions on a grid with a full covariance, per head (Cordonnier et al. 2020). delta as in gaussian_2d.h.
#ifndef HEED_ATTENTION_TERMS_GAUSSIAN_2D_FULL_H_
#define HEED_ATTENTION_TERMS_GAUSSIAN_2D_FULL_H_

#include "heed/attention/terms/gaussian_2d.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct Gaussian2dFullArgs {
  static constexpr int sums = 5, totals = 6;
  const float *spread, *center;  // (H, 2, 2), (H, 2)
  int64_t width;
};

#ifndef __CUDACC__
struct Gaussian2dFull {  // - |spread[h] (delta - center[h])|^2: covariance (2 spread^T spread)^-1
  static constexpr const char* name = "Gaussian2dFull";
  Tensor spread;      // (H, 2, 2), learned; sqrt(alpha) times the identity is Gaussian2d
  Tensor center;      // (H, 2) rows and columns, learned
  int64_t width = 1;  // of the grid
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"spread", spread, {z.H, 2, 2}, Sums::numbers}, {"center", center, {z.H, 2}, Sums::numbers}};
  }
  void check_sizes(const AttentionSizes&) const {
    check(width >= 1, "attention: Gaussian2dFull on a grid of width ", width, ", expected 1 or more");
  }
  static TermInfo info() {
    const auto near_identity = [](const Shape& shape, Rng& rng) {
      std::vector<float> values = random_normal(shape, 0, 0.01f, rng, kCpu).to_vector<float>();
      for (size_t i = 0; i < values.size(); ++i) values[i] += i % 4 == 0 || i % 4 == 3 ? 1.0f : 0.0f;
      return Tensor::from(values, shape, kCpu);
    };
    return {.name = "gaussian_full",
            .aliases = {"gaussian_2d_full"},
            .summary = "subtracts |spread (offset on the grid - center)|^2, a 2 x 2 spread per head",
            .source = "Cordonnier et al. 2020",
            .use = TermUse::position,
            .needs_grid = true,
            .parameters = {{"spread", "spread", "add -|spread[h] (delta - center[h])|^2", {{2}, {2}}, near_identity}, gaussian_center()}};
  }
  static Gaussian2dFull make(const TermInput& in) { return {in.tensors[0], in.tensors[1], in.place.columns}; }
  Gaussian2dFullArgs args() const { return {raw<float>(spread), raw<float>(center), width}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT V score_at(const Gaussian2dFullArgs& t, int64_t h, V s, const GridOffset<V>& at) {
  const float* a = t.spread + 4 * h;
  const V u = fma(V(a[0]), at.rows, V(a[1]) * at.columns), v = fma(V(a[2]), at.rows, V(a[3]) * at.columns);
  return s - fma(u, u, v * v);
}
// The moments of the offsets, weighted with ds: everything follows from them.
template <class V>
HEED_ELEMENT void add_gradient_at(const Gaussian2dFullArgs&, V* sums, V ds, const GridOffset<V>& at) {
  const V rows = ds * at.rows, columns = ds * at.columns;
  sums[0] = sums[0] + rows;
  sums[1] = sums[1] + columns;
  sums[2] = fma(rows, at.rows, sums[2]);
  sums[3] = fma(rows, at.columns, sums[3]);
  sums[4] = fma(columns, at.columns, sums[4]);
}
// totals: of the four numbers of spread, then of center by rows and by columns
template <class V>
HEED_ELEMENT void finish_gradient(const Gaussian2dFullArgs& t, int64_t h, const V* sums, V* totals) {
  const V a = t.spread[4 * h], b = t.spread[4 * h + 1], c = t.spread[4 * h + 2], d = t.spread[4 * h + 3], two = 2.0f;
  totals[0] = totals[0] + two * -fma(a, sums[2], b * sums[3]);
  totals[1] = totals[1] + two * -fma(a, sums[3], b * sums[4]);
  totals[2] = totals[2] + two * -fma(c, sums[2], d * sums[3]);
  totals[3] = totals[3] + two * -fma(c, sums[3], d * sums[4]);
  const V u = fma(a, sums[0], b * sums[1]), v = fma(c, sums[0], d * sums[1]);
  totals[4] = totals[4] + two * fma(a, u, c * v);
  totals[5] = totals[5] + two * fma(b, u, d * v);
}
#endif

#ifdef HEED_TERM_BLOCKS
inline HWY_ATTR void block_score(const Gaussian2dFullArgs& t, const ScoreBlock& x, float* s, int64_t stride) {
  grid_block_score(t, x, s, stride);
}
inline HWY_ATTR void block_gradient(const Gaussian2dFullArgs& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x,
                                    const float* ds, int64_t stride) {
  float* const totals[] = {sinks[0], sinks[0] + kSinkLanes, sinks[0] + 2 * kSinkLanes, sinks[0] + 3 * kSinkLanes,
                           sinks[1], sinks[1] + kSinkLanes};
  grid_block_gradient(t, totals, x, ds, stride);
}
#endif
