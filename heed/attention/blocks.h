// What forward and backward share for a block: transpose keys into panels, compute scores, drop weights. Included like lanes.h.
#if defined(HEED_ATTENTION_BLOCKS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_BLOCKS_H_
#undef HEED_ATTENTION_BLOCKS_H_
#else
#define HEED_ATTENTION_BLOCKS_H_
#endif

#include "heed/attention/apply_terms.h"
#include "heed/attention/float_rows.h"
#include "heed/attention/tile.h"
#include "heed/attention/work.h"
#include "heed/core/philox_lanes.h"
#include "heed/core/transpose_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Floats that transpose_panels needs for a block of keys.
static HWY_INLINE int64_t panels_size(int64_t keys, int64_t D) { return (keys + panel_width() - 1) / panel_width() * panel_width() * D; }

// rows: (keys, D), `stride` apart -> panels of keys: (panels, D, panel_width), times factor, zero after the last key.
template <class T>
HWY_ATTR void transpose_panels(const T* rows, int64_t stride, int64_t keys, int64_t D, float factor, float* to) {
  const int64_t wide = panel_width();
  for (int64_t first = 0; first < keys; first += wide, to += D * wide) {
    const int64_t count = std::min(wide, keys - first);
    transpose_rows(rows + first * stride, stride, count, D, factor, to, wide);
    for (int64_t d = 0; d < D && count < wide; ++d) std::fill_n(to + d * wide + count, wide - count, 0.0f);
  }
}
// Tokens [first, first + keys) of a head.
inline HWY_ATTR void transpose_panels(const TokenRows& x, DType dtype, int64_t b, int64_t h, int64_t first, int64_t keys, int64_t D,
                                      float factor, float* to) {
  if (dtype == DType::bf16) return transpose_panels(x.at<const Bf16>(b, h, first), x.token, keys, D, factor, to);
  transpose_panels(x.at<const float>(b, h, first), x.token, keys, D, factor, to);
}

// s: (rows, stride) = q transposed, then the terms. q: (rows, D); transposed is null when beta is 0.
inline void fill_scores(const ScoreArgs& a, const ScoreBlock& x, FloatRows q, const float* transposed, float* s, int64_t stride,
                        float* slopes = nullptr) {
  const int64_t columns = whole_registers(x.keys()), D = a.sizes.D;
  // Not hard rows: backward looks for the largest score bit for bit, in blocks of other sizes.
  const bool starts = transposed && !a.hard && !a.terms.empty();
  const InitialScores start = starts ? initial_scores_of(a.terms[0], a.sizes, x, columns) : InitialScores{};
  if (transposed) {
    tile_product({q.data, q.stride, 1}, transposed, panel_width(), start, s, stride, x.rows(), columns, D, D * panel_width());
  } else {
    for (int64_t r = 0; r < x.rows(); ++r) std::fill_n(s + r * stride, columns, 0.0f);
  }
  apply_terms(a.terms, x, s, stride, slopes, start.data ? 1 : 0);
}

// The factors of dropout for the weights of one query: 0, or 1 / (1 - p). Keys from j0 on, a multiple of 64. As in
// dropout.cc, 64 keys share 16 blocks of 4 random words, for any register width. factors: keys rounded up to a multiple of 64.
static HWY_ATTR void drop_factors(const ScoreArgs& a, const ScoreRow& row, int64_t j0, int64_t keys, float* factors) {
  const AttentionSizes& z = a.sizes;
  const int64_t groups = (z.M + 63) / 64, index = (row.b * z.H + row.h) * z.N + row.i, step = std::min<int64_t>(lane_count(), 16);
  const Words limit = hn::Set(WordTag(), static_cast<uint32_t>(static_cast<double>(a.dropout) * 0x1p32));
  const Lanes kept = 1 / (1 - a.dropout);
  for (int64_t j = 0; j < keys; j += 64)
    for (int64_t lane = 0; lane < 16; lane += step) {
      Words words[4];
      philox_lanes(a.dropout_key, static_cast<uint64_t>((index * groups + (j0 + j) / 64) * 16 + lane), words);
      for (int64_t word = 0; word < 4; ++word) {
        const auto keep = hn::RebindMask(FloatTag(), hn::Not(hn::Lt(words[word], limit)));
        Lanes(hn::IfThenElseZero(keep, kept.v)).store(factors + j + word * 16 + lane);
      }
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
