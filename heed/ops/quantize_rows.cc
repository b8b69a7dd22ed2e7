#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/quantize_rows.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include "heed/core/parallel.h"
#include "heed/ops/quantize_rows.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

RowPeak peak_of(const float* x, int64_t columns) {
  Lanes peaks = 0.0f, squares = 0.0f;
  for_lanes(columns, [&](int64_t i, auto load, auto) HEED_LANES {
    const Lanes number = load(x + i);
    peaks = max(peaks, abs(number));
    squares = fma(number, number, squares);
  });
  return {largest(peaks), sum(squares) / static_cast<float>(columns)};
}

// bytes = round(x / scale - scaled), where `scaled` is the value of a first row of bytes, if any.
void round_row(const float* x, int64_t columns, float scale, const int8_t* before, float before_scale, int8_t* bytes) {
  const float factor = scale > 0 ? 1 / scale : 0;
  const hn::Rebind<int8_t, FloatTag> small;
  const int64_t step = lane_count();
  HWY_ALIGN float numbers[kLanes] = {};
  HWY_ALIGN int8_t rounded[kLanes];
  for (int64_t i = 0; i < columns; i += step) {
    const int64_t count = std::min(step, columns - i);
    Lanes number = count == step ? Lanes::load(x + i) : load_some(x + i, count);
    if (before) {
      for (int64_t j = 0; j < count; ++j) numbers[j] = static_cast<float>(before[i + j]);
      number = number - Lanes::load(numbers) * Lanes(before_scale);
    }
    const auto low = hn::DemoteTo(small, hn::NearestInt((number * Lanes(factor)).v));
    if (count == step) {
      hn::StoreU(low, small, bytes + i);
    } else {
      hn::StoreU(low, small, rounded);
      std::copy_n(rounded, count, bytes + i);
    }
  }
}

void scale_rows(const float* sums, const SplitRows& scaled, const float* column_scales, int64_t rows, int64_t columns, float* to,
                int64_t stride) {
  for (int64_t row = 0; row < rows; ++row, to += stride) {
    const float *first = sums + row * columns, scale = scaled.scales[row];
    const int64_t second = scaled.second[row];
    if (second < 0) {
      for_lanes(columns, [&](int64_t i, auto load, auto store)
                             HEED_LANES { store(to + i, load(first + i) * (load(column_scales + i) * Lanes(scale))); });
      continue;
    }
    const float *rest = sums + second * columns, fine = scaled.scales[second];
    for_lanes(columns, [&](int64_t i, auto load, auto store) HEED_LANES {
      store(to + i, fma(load(first + i), scale, load(rest + i) * Lanes(fine)) * load(column_scales + i));
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(peak_of);
HWY_EXPORT(round_row);
HWY_EXPORT(scale_rows);

void quantize_rows(const float* x, int64_t rows, int64_t columns, float most, int8_t* bytes, float* scales) {
  parallel_for(rows, 1 + (1 << 15) / (columns + 1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      scales[row] = HWY_DYNAMIC_DISPATCH(peak_of)(x + row * columns, columns).peak / most;
      HWY_DYNAMIC_DISPATCH(round_row)(x + row * columns, columns, scales[row], nullptr, 0, bytes + row * columns);
    }
  });
}

void quantize_split_rows(const float* x, int64_t rows, int64_t columns, SplitRows& out) {
  constexpr float far_out = 8, steps = 127;  // times the root of the mean square
  out.count = rows;
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * columns;
    int8_t* bytes = out.bytes + row * columns;
    const auto [peak, square] = HWY_DYNAMIC_DISPATCH(peak_of)(from, columns);
    out.scales[row] = peak / steps;
    out.second[row] = -1;
    HWY_DYNAMIC_DISPATCH(round_row)(from, columns, out.scales[row], nullptr, 0, bytes);
    if (peak * peak <= far_out * far_out * square) continue;
    out.second[row] = out.count;
    out.scales[out.count] = out.scales[row] / (2 * steps);
    HWY_DYNAMIC_DISPATCH(round_row)(from, columns, out.scales[out.count], bytes, out.scales[row], out.bytes + out.count * columns);
    ++out.count;
  }
}

void scale_tile(const float* sums, const SplitRows& scaled, const float* column_scales, int64_t rows, int64_t columns, float* to,
                int64_t stride) {
  HWY_DYNAMIC_DISPATCH(scale_rows)(sums, scaled, column_scales, rows, columns, to, stride);
}

}  // namespace heed
#endif
