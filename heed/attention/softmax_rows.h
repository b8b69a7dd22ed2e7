// Rows of scores: as products of single queries and keys, and as weights. Included like lanes.h.
#if defined(HEED_ATTENTION_SOFTMAX_ROWS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_SOFTMAX_ROWS_H_
#undef HEED_ATTENTION_SOFTMAX_ROWS_H_
#else
#define HEED_ATTENTION_SOFTMAX_ROWS_H_
#endif

#include <algorithm>

#include "heed/ops/row_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// A sum of e^(s - row_max) times this factor is a sum of e^(s - highest).
static HWY_INLINE float rescale_factor(float row_max, float highest) {
  return highest == row_max ? 1.0f : hn::GetLane(exp_below(Lanes(row_max) - Lanes(highest)).v);
}

// A row of scores becomes weights e^(s - row_max). Updates the running maximum and sum, and returns the factor that rescales
// everything summed before.
static HWY_INLINE float soft_row(float* row, int64_t keys, float& row_max, float& row_sum) {
  const float highest = std::max(row_max, max_over(keys, [&](int64_t j, auto load) HEED_LANES { return load(row + j); }));
  if (highest == -HUGE_VALF) {  // every key so far is masked
    std::fill_n(row, keys, 0.0f);
    return 1;
  }
  const Lanes shift = highest;
  const float rescale = rescale_factor(row_max, highest);
  row_sum = row_sum * rescale + sum_stored(keys, row, [&](int64_t j, auto load) HEED_LANES { return exp_below(load(row + j) - shift); });
  row_max = highest;
  return rescale;
}

// The same for hard attention: 1 where the score is the highest. row_sum counts how many have it.
static HWY_INLINE float hard_row(float* row, int64_t keys, float& row_max, float& row_sum) {
  const float highest = std::max(row_max, max_over(keys, [&](int64_t j, auto load) HEED_LANES { return load(row + j); }));
  const float rescale = highest == row_max ? 1.0f : 0.0f;
  const bool nothing = highest == -HUGE_VALF;
  row_sum = row_sum * rescale + sum_stored(keys, row, [&](int64_t j, auto load) HEED_LANES {
              return nothing ? Lanes(0) : select(load(row + j) == Lanes(highest), Lanes(1), Lanes(0));
            });
  row_max = highest;
  return rescale;
}

// The sums over the lanes of four registers, side by side.
#if HWY_TARGET == HWY_SCALAR
static HWY_INLINE void store_four_sums(const Lanes* x, float factor, float* to) {
  for (int64_t c = 0; c < 4; ++c) to[c] = hn::GetLane(x[c].v) * factor;
}
#else
template <class V>
static HWY_INLINE auto sum_of_fours(V x) {
  using Tag = hn::DFromV<V>;
  if constexpr (hn::MaxLanes(Tag()) > 4) {
    const hn::Half<Tag> half;
    return sum_of_fours(hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  } else {
    return x;
  }
}
static HWY_INLINE void store_four_sums(const Lanes* x, float factor, float* to) {
  const FloatTag floats;
  const hn::Repartition<double, FloatTag> pairs;
  const auto two = [&](Lanes a, Lanes b) HEED_LANES {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(floats, a.v, b.v), hn::InterleaveUpper(floats, a.v, b.v)));
  };
  const auto ab = two(x[0], x[1]), cd = two(x[2], x[3]);
  const auto four =
      hn::Add(hn::BitCast(floats, hn::InterleaveLower(pairs, ab, cd)), hn::BitCast(floats, hn::InterleaveUpper(pairs, ab, cd)));
  const hn::FixedTag<float, 4> tag;
  hn::StoreU(hn::Mul(sum_of_fours(four), hn::Set(tag, factor)), tag, to);
}
#endif

// s: (rows, 4) = factor q key. q: (rows, D), four keys: (D) each, f32 or bf16
template <int rows, class K>
static HWY_INLINE void dot_tile(const float* q, const K* const* key, int64_t D, float factor, float* s, int64_t stride) {
  Lanes total[rows][4];
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < 4; ++c) total[r][c] = 0;
  for_lanes(D, [&](int64_t d, auto load, auto) HEED_LANES {
    const Lanes k[4] = {load(key[0] + d), load(key[1] + d), load(key[2] + d), load(key[3] + d)};
    for (int r = 0; r < rows; ++r) {
      const Lanes left = load(q + r * D + d);
      for (int c = 0; c < 4; ++c) total[r][c] = fma(left, k[c], total[r][c]);
    }
  });
  for (int r = 0; r < rows; ++r) store_four_sums(total[r], factor, s + r * stride);
}

// s: (rows, keys), `stride` apart = factor q k^T, up to three numbers more after the end of a row. Keys are read once,
// without a copy. q: (rows, D), k: (keys, D), k_stride apart
template <class K>
HWY_ATTR void dot_scores(const float* q, const K* k, int64_t k_stride, int64_t rows, int64_t keys, int64_t D, float factor, float* s,
                         int64_t stride) {
#if HWY_TARGET <= HWY_AVX3
  constexpr int most = 4;
#else
  constexpr int most = 2;
#endif
  for (int64_t j = 0; j < keys; j += 4) {
    const K* key[4];
    for (int64_t c = 0; c < 4; ++c) key[c] = k + std::min(j + c, keys - 1) * k_stride;
    int64_t r = 0;
    for (; r + most <= rows; r += most) dot_tile<most>(q + r * D, key, D, factor, s + r * stride + j, stride);
    for (; r + 2 <= rows; r += 2) dot_tile<2>(q + r * D, key, D, factor, s + r * stride + j, stride);
    for (; r < rows; ++r) dot_tile<1>(q + r * D, key, D, factor, s + r * stride + j, stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
