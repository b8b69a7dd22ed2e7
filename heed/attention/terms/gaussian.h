// Gaussian positions on a grid, per head (Cordonnier et al. 2020). delta = place of query - place of key, where token t
// lies at row t / width and column t % width.
#ifndef HEED_ATTENTION_TERMS_GAUSSIAN_H_
#define HEED_ATTENTION_TERMS_GAUSSIAN_H_

#include "heed/attention/term.h"

namespace heed {

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
};

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
};

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_GAUSSIAN_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_GAUSSIAN_FORMULAS
#undef HEED_ATTENTION_TERMS_GAUSSIAN_FORMULAS
#else
#define HEED_ATTENTION_TERMS_GAUSSIAN_FORMULAS
#endif
#include "heed/attention/grid_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

inline HWY_ATTR void block_score(const Gaussian2d& t, const ScoreBlock& x, float* s, int64_t stride) {
  const Lanes alpha = raw<float>(t.alpha)[x.h];
  for_offsets(raw<float>(t.center) + 2 * x.h, t.width, x, [&](int64_t r, int64_t j, Lanes down, Lanes along) HEED_LANES {
    float* to = s + r * stride + j;
    fma(-alpha, fma(down, down, along * along), Lanes::load(to)).store(to);
  });
}
inline HWY_ATTR void block_gradient(const Gaussian2d& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x, const float* ds,
                                    int64_t stride) {
  Lanes squares = 0, down_sum = 0, along_sum = 0;
  for_offsets(raw<float>(t.center) + 2 * x.h, t.width, x, [&](int64_t r, int64_t j, Lanes down, Lanes along) HEED_LANES {
    const Lanes d = Lanes::load(ds + r * stride + j);
    squares = fma(d, fma(down, down, along * along), squares);
    down_sum = fma(d, down, down_sum);
    along_sum = fma(d, along, along_sum);
  });
  const Lanes pull = 2 * raw<float>(t.alpha)[x.h];
  (Lanes::load(sinks[0]) - squares).store(sinks[0]);
  fma(pull, down_sum, Lanes::load(sinks[1])).store(sinks[1]);
  fma(pull, along_sum, Lanes::load(sinks[1] + kSinkLanes)).store(sinks[1] + kSinkLanes);
}

inline HWY_ATTR void block_score(const Gaussian2dFull& t, const ScoreBlock& x, float* s, int64_t stride) {
  const float* a = raw<float>(t.spread) + 4 * x.h;
  for_offsets(raw<float>(t.center) + 2 * x.h, t.width, x, [&](int64_t r, int64_t j, Lanes down, Lanes along) HEED_LANES {
    const Lanes u = fma(a[0], down, a[1] * along), v = fma(a[2], down, a[3] * along);
    float* to = s + r * stride + j;
    (Lanes::load(to) - fma(u, u, v * v)).store(to);
  });
}
// Everything follows from the moments of the offsets.
inline HWY_ATTR void block_gradient(const Gaussian2dFull& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x,
                                    const float* ds, int64_t stride) {
  const float* a = raw<float>(t.spread) + 4 * x.h;
  Lanes down_sum = 0, along_sum = 0, down_down = 0, down_along = 0, along_along = 0;
  for_offsets(raw<float>(t.center) + 2 * x.h, t.width, x, [&](int64_t r, int64_t j, Lanes down, Lanes along) HEED_LANES {
    const Lanes d = Lanes::load(ds + r * stride + j), d_down = d * down, d_along = d * along;
    down_sum = down_sum + d_down;
    along_sum = along_sum + d_along;
    down_down = fma(d_down, down, down_down);
    down_along = fma(d_down, along, down_along);
    along_along = fma(d_along, along, along_along);
  });
  const auto put = [](float* to, Lanes change) HEED_LANES { (Lanes::load(to) + 2 * change).store(to); };
  put(sinks[0], -fma(a[0], down_down, a[1] * down_along));
  put(sinks[0] + kSinkLanes, -fma(a[0], down_along, a[1] * along_along));
  put(sinks[0] + 2 * kSinkLanes, -fma(a[2], down_down, a[3] * down_along));
  put(sinks[0] + 3 * kSinkLanes, -fma(a[2], down_along, a[3] * along_along));
  const Lanes u = fma(a[0], down_sum, a[1] * along_sum), v = fma(a[2], down_sum, a[3] * along_sum);
  put(sinks[1], fma(a[0], u, a[2] * v));
  put(sinks[1] + kSinkLanes, fma(a[1], u, a[3] * v));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
