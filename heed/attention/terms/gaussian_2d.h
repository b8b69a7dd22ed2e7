// Gaussian positions on a grid, per head (Cordonnier et al. 2020). delta = position of query - position of key, where token t
// is at row t / width and column t % width.
#ifndef HEED_ATTENTION_TERMS_GAUSSIAN_2D_H_
#define HEED_ATTENTION_TERMS_GAUSSIAN_2D_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct Gaussian2dArgs {
  static constexpr int sums = 3, totals = 3;  // numbers that add_gradient sums, numbers of the parameters of a head
  const float *alpha, *center;                // (H), (H, 2)
  int64_t width;
};

#ifndef __CUDACC__
// The parameter "center" of both Gaussian terms.
inline TermParameter gaussian_center() {
  return {"center", "center", "of alpha or spread: rows, columns", {{2}}, [](const Shape& shape, Rng& rng) {
            return random_normal(shape, 0, 2, rng, kCpu);
          }};
}

struct Gaussian2d {  // - alpha[h] |delta - center[h]|^2
  static constexpr const char* name = "Gaussian2d";
  Tensor alpha;       // (H), learned
  Tensor center;      // (H, 2) rows and columns, learned
  int64_t width = 1;  // of the grid
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"alpha", alpha, {z.H}, Sums::numbers}, {"center", center, {z.H, 2}, Sums::numbers}};
  }
  void check_sizes(const AttentionSizes&) const {
    check(width >= 1, "attention: Gaussian2d on a grid of width ", width, ", expected 1 or more");
  }
  static TermInfo info() {
    return {
        .name = "gaussian",
        .aliases = {"gaussian_2d"},
        .summary = "subtracts alpha |offset on the grid - center|^2, per head",
        .source = "Cordonnier et al. 2020",
        .use = TermUse::position,
        .needs_grid = true,
        .parameters = {{.name = "alpha",
                        .file_name = "alpha",
                        .meaning = "add -alpha[h] |delta - center[h]|^2, delta = query position - key position on the\ngrid, in rows and "
                                   "columns",
                        .initial = [](const Shape& shape, Rng& rng) { return random_normal(shape, 1, 0.01f, rng, kCpu); }},
                       gaussian_center()}};
  }
  static Gaussian2d make(const TermInput& in) { return {in.tensors[0], in.tensors[1], in.place.columns}; }
  Gaussian2dArgs args() const { return {raw<float>(alpha), raw<float>(center), width}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT V score_at(const Gaussian2dArgs& t, int64_t h, V s, const GridOffset<V>& at) {
  return fma(-V(t.alpha[h]), fma(at.rows, at.rows, at.columns * at.columns), s);
}
// Sums of ds |offset|^2 and of ds offset.
template <class V>
HEED_ELEMENT void add_gradient_at(const Gaussian2dArgs&, V* sums, V ds, const GridOffset<V>& at) {
  sums[0] = fma(ds, fma(at.rows, at.rows, at.columns * at.columns), sums[0]);
  sums[1] = fma(ds, at.rows, sums[1]);
  sums[2] = fma(ds, at.columns, sums[2]);
}
// totals: of alpha, center by rows, center by columns
template <class V>
HEED_ELEMENT void finish_gradient(const Gaussian2dArgs& t, int64_t h, const V* sums, V* totals) {
  const V pull = 2 * t.alpha[h];
  totals[0] = totals[0] - sums[0];
  totals[1] = fma(pull, sums[1], totals[1]);
  totals[2] = fma(pull, sums[2], totals[2]);
}
#endif

#ifdef HEED_TERM_BLOCKS
inline HWY_ATTR void block_score(const Gaussian2dArgs& t, const ScoreBlock& x, float* s, int64_t stride) {
  grid_block_score(t, x, s, stride);
}
inline HWY_ATTR void block_gradient(const Gaussian2dArgs& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x,
                                    const float* ds, int64_t stride) {
  float* const totals[] = {sinks[0], sinks[1], sinks[1] + kSinkLanes};
  grid_block_gradient(t, totals, x, ds, stride);
}
#endif
