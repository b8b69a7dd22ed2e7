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

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_GAUSSIAN_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_GAUSSIAN_FORMULAS
#undef HEED_ATTENTION_TERMS_GAUSSIAN_FORMULAS
#else
#define HEED_ATTENTION_TERMS_GAUSSIAN_FORMULAS
#endif
#include "heed/attention/term_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Places of keys from j on.
struct KeyPlaces {
  Lanes row, column;
};
HWY_INLINE KeyPlaces key_places(int64_t width, int64_t j) {
  const Lanes across = static_cast<float>(width), key = keys_from(j), row = floor((key + 0.5f) / across);
  return {row, fma(-row, across, key)};
}

// visit(row of the block, place of the first key within the block, delta - center by rows and columns), key places being
// worked out once for several rows.
template <class Visit>
HWY_INLINE void for_offsets(const float* center, int64_t width, const ScoreBlock& x, const Visit& visit) {
  constexpr int64_t strip = 16;
  for (int64_t r0 = 0; r0 < x.rows(); r0 += strip)
    for (int64_t j = 0; j < x.keys(); j += lane_count()) {
      const KeyPlaces key = key_places(width, x.j0 + j);
      for (int64_t r = r0; r < std::min(r0 + strip, x.rows()); ++r) {
        const int64_t i = x.i0 + r;
        visit(r, j, Lanes(static_cast<float>(i / width) - center[0]) - key.row,
              Lanes(static_cast<float>(i % width) - center[1]) - key.column);
      }
    }
}

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

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
