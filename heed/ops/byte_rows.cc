#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/byte_rows.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include "heed/core/parallel.h"
#include "heed/ops/byte_rows.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

void row_to_bytes(const float* x, int64_t columns, float most, int8_t* bytes, float* scale) {
  Lanes peaks = 0.0f;
  for_lanes(columns, [&](int64_t i, auto load, auto) HEED_LANES { peaks = max(peaks, abs(load(x + i))); });
  const float peak = largest(peaks), factor = peak > 0 ? most / peak : 0;
  *scale = peak / most;
  const hn::Rebind<int8_t, FloatTag> small;
  const int64_t step = lane_count();
  const auto rounded = [&](Lanes lanes) HEED_LANES { return hn::DemoteTo(small, hn::NearestInt((lanes * Lanes(factor)).v)); };
  int64_t i = 0;
  for (; i + step <= columns; i += step) hn::StoreU(rounded(Lanes::load(x + i)), small, bytes + i);
  if (i == columns) return;
  HWY_ALIGN int8_t rest[kLanes];
  hn::StoreU(rounded(load_some(x + i, columns - i)), small, rest);
  std::copy_n(rest, columns - i, bytes + i);
}

void scale_rows(const float* from, const float* row_scales, const float* column_scales, int64_t rows, int64_t columns, float* to,
                int64_t stride) {
  for (int64_t row = 0; row < rows; ++row, from += columns, to += stride) {
    const Lanes scale = row_scales[row];
    for_lanes(columns,
              [&](int64_t i, auto load, auto store) HEED_LANES { store(to + i, load(from + i) * (load(column_scales + i) * scale)); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(row_to_bytes);
HWY_EXPORT(scale_rows);

void rows_to_bytes(const float* x, int64_t rows, int64_t columns, float most, int8_t* bytes, float* scales) {
  parallel_for(rows, 1 + (1 << 15) / (columns + 1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      HWY_DYNAMIC_DISPATCH(row_to_bytes)(x + row * columns, columns, most, bytes + row * columns, scales + row);
  });
}

void scale_tile(const float* from, const float* row_scales, const float* column_scales, int64_t rows, int64_t columns, float* to,
                int64_t stride) {
  HWY_DYNAMIC_DISPATCH(scale_rows)(from, row_scales, column_scales, rows, columns, to, stride);
}

}  // namespace heed
#endif
