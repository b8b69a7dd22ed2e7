// Masks that are given: any boolean pattern, score by score or in blocks, and windows on a grid.
#ifndef HEED_ATTENTION_TERMS_PATTERN_H_
#define HEED_ATTENTION_TERMS_PATTERN_H_

#include <algorithm>

#include "heed/attention/term.h"

namespace heed {

struct Mask {  // keep where true
  static constexpr const char* name = "Mask";
  Tensor keep;  // bool, broadcasts to (B, H, N, M): (B, 1, 1, M) masks padding
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"keep", keep, {z.B, z.H, z.N, z.M}, Sums::none, DType::boolean, true}};
  }
};

struct BlockSparse {  // keep pattern[h, i / size, j / size]
  static constexpr const char* name = "BlockSparse";
  Tensor pattern;  // bool, (H or 1, N / size, M / size), both rounded up; N counts from position 0
  int64_t size = 64;
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    const auto blocks = [&](int64_t tokens) { return size > 0 ? (tokens + size - 1) / size : 0; };
    return {{"pattern", pattern, {z.H, blocks(z.first_query + z.N), blocks(z.M)}, Sums::none, DType::boolean, true}};
  }
  void check_sizes(const AttentionSizes&) const { check(size >= 1, "attention: BlockSparse in blocks of ", size, ", expected 1 or more"); }
};

struct GridWindow {  // keep what is at most `rows` rows and `columns` columns away on a grid
  static constexpr const char* name = "GridWindow";
  int64_t rows = 0, columns = 0;
  int64_t width = 1;  // of the grid: token t lies at row t / width, column t % width
  void check_sizes(const AttentionSizes&) const {
    check(rows >= 0 && columns >= 0 && width >= 1, "attention: GridWindow{", rows, ", ", columns, ", ", width,
          "}, expected 0 or more on a grid of width 1 or more");
  }
};

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_PATTERN_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_PATTERN_FORMULAS
#undef HEED_ATTENTION_TERMS_PATTERN_FORMULAS
#else
#define HEED_ATTENTION_TERMS_PATTERN_FORMULAS
#endif
#include "heed/attention/grid_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Whether `value` is all that a mask says in a block.
inline bool only(bool value, const Mask& t, const ScoreBlock& x) {
  const int64_t keys = same_for_all_keys(t.keep) ? 1 : x.keys(), first = same_for_all_keys(t.keep) ? 0 : x.j0;
  for (int64_t i = x.i0; i < (t.keep.shape()[2] == 1 ? x.i0 + 1 : x.i1); ++i) {
    const bool* row = broadcast_row<bool>(t.keep, {x.b, x.h, i, x.first}) + first;
    if (std::find(row, row + keys, !value) != row + keys) return false;
  }
  return true;
}
inline bool skip(const Mask& t, const ScoreBlock& x) { return only(false, t, x); }
inline bool idle(const Mask& t, const ScoreBlock& x) { return only(true, t, x); }
template <class Load>
HWY_INLINE Lanes score(const Mask& t, Lanes s, ScoreRow row, int64_t j, const Load&) {
  const bool* from = broadcast_row<bool>(t.keep, row);
  if (same_for_all_keys(t.keep)) return *from ? s : Lanes(-HUGE_VALF);
  const int64_t keys = std::min(lane_count(), t.keep.shape()[3] - j);
  uint8_t kept[kLanes] = {};
  std::copy_n(from + j, keys, kept);
  const auto wide = hn::PromoteTo(IntTag(), hn::LoadU(hn::Rebind<uint8_t, IntTag>(), kept));
  return hn::IfThenElse(hn::RebindMask(FloatTag(), hn::Eq(wide, hn::Zero(IntTag()))), Lanes(-HUGE_VALF).v, s.v);
}

// visit(first query, their end, first key, their end, kept) for every cell of the pattern that a block meets, until it says stop.
template <class Visit>
bool for_cells(const BlockSparse& t, const ScoreBlock& x, const Visit& visit) {
  const Shape& shape = t.pattern.shape();
  const bool* pattern = raw<bool>(t.pattern) + (shape[0] == 1 ? 0 : x.h) * shape[1] * shape[2];
  for (int64_t i = x.i0; i < x.i1;) {
    const int64_t below = std::min(x.i1, (i / t.size + 1) * t.size);
    for (int64_t j = x.j0; j < x.j1;) {
      const int64_t right = std::min(x.j1, (j / t.size + 1) * t.size);
      if (!visit(i, below, j, right, pattern[(shape[1] == 1 ? 0 : i / t.size) * shape[2] + (shape[2] == 1 ? 0 : j / t.size)])) return false;
      j = right;
    }
    i = below;
  }
  return true;
}
inline bool skip(const BlockSparse& t, const ScoreBlock& x) {
  return for_cells(t, x, [](int64_t, int64_t, int64_t, int64_t, bool kept) { return !kept; });
}
inline bool idle(const BlockSparse& t, const ScoreBlock& x) {
  return for_cells(t, x, [](int64_t, int64_t, int64_t, int64_t, bool kept) { return kept; });
}
inline void block_score(const BlockSparse& t, const ScoreBlock& x, float* s, int64_t stride) {
  for_cells(t, x, [&](int64_t i, int64_t below, int64_t j, int64_t right, bool kept) {
    for (; i < below && !kept; ++i) std::fill_n(s + (i - x.i0) * stride + j - x.j0, right - j, -HUGE_VALF);
    return true;
  });
}

inline KeyRange reach(const GridWindow& t, const ScoreBlock& x) {
  return {(x.i0 / t.width - t.rows) * t.width, ((x.i1 - 1) / t.width + t.rows + 1) * t.width};
}
inline HWY_ATTR void block_score(const GridWindow& t, const ScoreBlock& x, float* s, int64_t stride) {
  const float origin[2] = {0, 0};
  const Lanes rows = static_cast<float>(t.rows), columns = static_cast<float>(t.columns);
  for_offsets(origin, t.width, x, [&](int64_t r, int64_t j, Lanes down, Lanes along) HEED_LANES {
    float* to = s + r * stride + j;
    select(abs(down) > rows || abs(along) > columns, -HUGE_VALF, Lanes::load(to)).store(to);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
