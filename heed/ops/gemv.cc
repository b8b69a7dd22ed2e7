#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/gemv.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/gemv.h"

#ifndef HEED_OPS_ONE_ROW_ONCE
#define HEED_OPS_ONE_ROW_ONCE
namespace heed {

// How b is split if its rows are summed: part (k, j) is rows [k rows, ...) and columns [j columns, ...).
struct RowParts {
  int64_t down, rows, across, columns;
};

inline constexpr int64_t kPartColumns = 4096;  // their sums stay in the first cache

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// to[r] = x . row r of b
template <int R>
HWY_INLINE void dots(const float* x, const float* b, int64_t stride, float* to, int64_t count) {
  Lanes sums[R];
  for (int r = 0; r < R; ++r) sums[r] = 0.0f;
  for_lanes(count, [&](int64_t i, auto load, auto) HEED_LANES {
    const Lanes here = load(x + i);
    for (int r = 0; r < R; ++r) sums[r] = fma(here, load(b + r * stride + i), sums[r]);
  });
  for (int r = 0; r < R; ++r) to[r] = sum(sums[r]);
}

// to += x[r] row r of b, over R rows; the first ones start from zero.
template <int R>
HWY_INLINE void add_rows(const float* x, const float* b, int64_t stride, float* to, int64_t columns, bool first) {
  Lanes factors[R];
  for (int r = 0; r < R; ++r) factors[r] = x[r];
  for_lanes(columns, [&](int64_t i, auto load, auto store) HEED_LANES {
    Lanes total = first ? Lanes(0.0f) : load(to + i);
    for (int r = 0; r < R; ++r) total = fma(factors[r], load(b + r * stride + i), total);
    store(to + i, total);
  });
}

// row r of `to` = x[r] y, x with `step` between elements
template <int R>
HWY_INLINE void scaled_rows(const float* x, int64_t step, const float* y, float* to, int64_t stride, int64_t columns, bool stream) {
  Lanes factors[R];
  for (int r = 0; r < R; ++r) factors[r] = x[r * step];
  for_lanes(stream, columns, [&](int64_t i, auto load, auto store) HEED_LANES {
    const Lanes here = load(y + i);
    for (int r = 0; r < R; ++r) store(to + r * stride + i, factors[r] * here);
  });
}

// y = x b^T. x: (K), b: (N, K) with rows `stride` apart, y: (N)
void row_by_rows(const float* x, const float* b, int64_t stride, float* y, int64_t N, int64_t K, const Epilogue& after) {
  const int64_t grain = std::max<int64_t>(4, (1 << 15) / K / 4 * 4);
  parallel_for(N, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    int64_t i = begin;
    for (; i + 4 <= end; i += 4) dots<4>(x, b + i * stride, stride, y + i, K);
    for (; i < end; ++i) dots<1>(x, b + i * stride, stride, y + i, K);
    if (after) after(0, {0, 1, begin, end - begin});
  });
}

// sums = x b by parts. x: (K), b: (K, N) with rows `stride` apart, sums: (parts.down, N)
void row_by_columns(const float* x, const float* b, int64_t stride, float* sums, int64_t N, int64_t K, RowParts parts) {
  parallel_tasks(parts.down * parts.across, [&](int64_t task) HWY_ATTR {
    const int64_t part = task / parts.across, column = task % parts.across * parts.columns;
    const int64_t begin = part * parts.rows, end = std::min(K, begin + parts.rows), columns = std::min(parts.columns, N - column);
    // Half a page from the rows, modulo pages: a load shortly after a store to the same offset of another page waits for it.
    constexpr int64_t page = 1024;
    HWY_ALIGN float room[kPartColumns + page];
    const auto place = [](const float* p) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) / sizeof(float)); };
    const float* from = b + begin * stride + column;
    float* to = room + ((place(from) - place(room) + page / 2) & (page - 1)) / 16 * 16;
    if (begin >= end) std::fill_n(to, columns, 0.0f);
    int64_t i = begin;
    for (; i + 8 <= end; i += 8, from += 8 * stride) add_rows<8>(x + i, from, stride, to, columns, i == begin);
    for (; i < end; ++i, from += stride) add_rows<1>(x + i, from, stride, to, columns, i == begin);
    std::copy_n(to, columns, sums + part * N + column);
  });
}

// y = the sum of the rows. sums: (count, N), y: (N)
void join_parts(const float* sums, int64_t count, float* y, int64_t N, const Epilogue& after) {
  parallel_for(N, std::max<int64_t>(1, (1 << 16) / count), [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(end - begin, [&](int64_t i, auto load, auto store) HEED_LANES {
      Lanes total = load(sums + begin + i);
      for (int64_t part = 1; part < count; ++part) total = total + load(sums + part * N + begin + i);
      store(y + begin + i, total);
    });
    if (after) after(0, {0, 1, begin, end - begin});
  });
}

// c = x y^T. x: (M) with `step` between elements, y: (N), c: (M, N) with rows `stride` apart
void outer(const float* x, int64_t step, const float* y, float* c, int64_t stride, int64_t M, int64_t N, const Epilogue& after) {
  const bool aligned = stride % lane_count() == 0 && reinterpret_cast<uintptr_t>(c) % (sizeof(float) * lane_count()) == 0;
  const bool stream = M * N >= kStreamFrom && aligned && !after;
  parallel_for(M, std::max<int64_t>(1, (1 << 15) / N), [&](int64_t begin, int64_t end) HWY_ATTR {
    int64_t i = begin;
    for (; !stream && i + 4 <= end; i += 4) scaled_rows<4>(x + i * step, step, y, c + i * stride, stride, N, false);
    for (; i < end; ++i) scaled_rows<1>(x + i * step, step, y, c + i * stride, stride, N, stream);
    if (after) after(0, {begin, end - begin, 0, N});
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(row_by_rows);
HWY_EXPORT(row_by_columns);
HWY_EXPORT(join_parts);
HWY_EXPORT(outer);

namespace {

// Numbers `step` apart side by side: themselves, or a copy.
class Side {
 public:
  Side(const float* from, int64_t count, int64_t step) : data_(from) {
    if (step == 1 || count <= 1) return;
    copy_ = Tensor::empty({count}, kCpu);
    float* to = raw<float>(copy_);
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
    data_ = to;
  }
  const float* data() const { return data_; }

 private:
  Tensor copy_;
  const float* data_;
};

// Enough rows to a part that joining the parts costs nothing beside them, but as many parts as two and four threads share
// evenly.
RowParts parts_of(int64_t N, int64_t K) {
  const auto pieces = [](int64_t size, int64_t most) { return std::max<int64_t>(1, (size + most - 1) / most); };
  const int64_t across = pieces(N, kPartColumns), columns = (pieces(N, across) + 15) / 16 * 16;
  int64_t down = pieces(K, std::max<int64_t>(64, (1 << 17) / columns));
  if (down > 1) down = std::min<int64_t>(32, (down + 3) / 4 * 4);
  return {down, (pieces(K, down) + 7) / 8 * 8, across, columns};
}

}  // namespace

void gemv(int64_t N, int64_t K, Matrix a, Matrix b, Matrix c, const Epilogue& after) {
  const Side x(a.data, K, a.transposed ? a.stride : 1);
  if (b.transposed) return HWY_DYNAMIC_DISPATCH(row_by_rows)(x.data(), b.data, b.stride, c.data, N, K, after);
  const RowParts parts = parts_of(N, K);
  const Tensor sums = Tensor::empty({parts.down, N}, kCpu);
  HWY_DYNAMIC_DISPATCH(row_by_columns)(x.data(), b.data, b.stride, raw<float>(sums), N, K, parts);
  HWY_DYNAMIC_DISPATCH(join_parts)(raw<float>(sums), parts.down, c.data, N, after);
}

void outer_product(int64_t M, int64_t N, Matrix a, Matrix b, Matrix c, const Epilogue& after) {
  const Side y(b.data, N, b.transposed ? b.stride : 1);
  HWY_DYNAMIC_DISPATCH(outer)(a.data, a.transposed ? 1 : a.stride, y.data(), c.data, c.stride, M, N, after);
}

}  // namespace heed
#endif
