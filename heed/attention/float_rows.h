// Tokens in memory as f32, whether they are stored as f32 or bf16. Included like lanes.h.
#if defined(HEED_ATTENTION_FLOAT_ROWS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_FLOAT_ROWS_H_
#undef HEED_ATTENTION_FLOAT_ROWS_H_
#else
#define HEED_ATTENTION_FLOAT_ROWS_H_
#endif

#include "heed/attention/score_block.h"
#include "heed/core/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Tokens of a head as f32: (count, width), `stride` apart.
struct FloatRows {
  const float* data;
  int64_t stride;
};
// Floats of scratch memory that float_rows needs: none for f32, which is read in place.
static HWY_INLINE int64_t float_rows_size(DType dtype, int64_t count, int64_t width) { return dtype == DType::bf16 ? count * width : 0; }
// Tokens [first, first + count) of a head. bf16 is widened into scratch, with zeros from column D up to `width`.
inline HWY_ATTR FloatRows float_rows(const TokenRows& x, DType dtype, int64_t b, int64_t h, int64_t first, int64_t count, int64_t D,
                                     int64_t width, float* scratch) {
  if (dtype != DType::bf16) return {x.at<const float>(b, h, first), x.token};
  for (int64_t r = 0; r < count; ++r) {
    const Bf16* from = x.at<const Bf16>(b, h, first + r);
    float* to = scratch + r * width;
    for_lanes(D, [&](int64_t d, auto load, auto store) HEED_LANES { store(to + d, load(from + d)); });
    std::fill(to + D, to + width, 0.0f);
  }
  return {scratch, width};
}

// One token of a head = factor row. row: (width)
inline HWY_ATTR void store_row(const TokenRows& x, DType dtype, int64_t b, int64_t h, int64_t i, const float* row, int64_t width,
                               float factor = 1) {
  const auto store_as = [&](auto* to) HEED_LANES {
    for_lanes(width, [&](int64_t e, auto load, auto store) HEED_LANES { store(to + e, load(row + e) * factor); });
  };
  dtype == DType::bf16 ? store_as(x.at<Bf16>(b, h, i)) : store_as(x.at<float>(b, h, i));
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
