// Learned relative positions: a number for every distance, per head (Shaw et al. 2018, Raffel et al. 2020).
#ifndef HEED_ATTENTION_TERMS_RELATIVE_H_
#define HEED_ATTENTION_TERMS_RELATIVE_H_

#include "heed/attention/term.h"

namespace heed {

struct RelativeBias {  // + table[h, clamp(j - i, -R, R) + R]
  static constexpr const char* name = "RelativeBias";
  Tensor table;  // (H, 2 R + 1), learned
  std::vector<TermTensor> tensors(const AttentionSizes& z) { return {{"table", table, {z.H, last_of(table)}, Sums::table}}; }
  void check_sizes(const AttentionSizes&) const {
    check(table.size(1) % 2 == 1, "attention: RelativeBias' table has ", table.size(1), " columns, expected an odd number, 2 R + 1");
  }
};

struct RelativeBias2d {  // + table[h, clamp(down, -R, R) + R, clamp(along, -C, C) + C]: place of key - place of query on a grid
  static constexpr const char* name = "RelativeBias2d";
  Tensor table;       // (H, 2 R + 1, 2 C + 1), learned
  int64_t width = 1;  // of the grid: token t lies at row t / width, column t % width
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"table", table, {z.H, table.defined() && table.rank() == 3 ? table.size(1) : 0, last_of(table)}, Sums::table}};
  }
  void check_sizes(const AttentionSizes&) const {
    check(table.size(1) % 2 == 1 && table.size(2) % 2 == 1 && width >= 1, "attention: RelativeBias2d's table has shape ", table.shape(),
          " and the grid width ", width, ", expected (H, 2 R + 1, 2 C + 1) and 1 or more");
  }
};

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_RELATIVE_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_RELATIVE_FORMULAS
#undef HEED_ATTENTION_TERMS_RELATIVE_FORMULAS
#else
#define HEED_ATTENTION_TERMS_RELATIVE_FORMULAS
#endif
#include "heed/attention/diagonal_lanes.h"
#include "heed/attention/grid_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// A row of the table for all queries, each beginning one number before the last one's.
inline InitialScores initial_scores(const RelativeBias& t, const AttentionSizes&, const ScoreBlock& x, int64_t columns) {
  const int64_t width = t.table.shape()[1], reach = width / 2, at = x.j0 - x.i0 + reach;
  if (at - x.rows() + 1 < 0 || at + columns > width) return {};  // beyond its ends
  return {raw<float>(t.table) + x.h * width + at, -1};
}
// Lanes of a clamped table are consecutive but for its ends.
template <class Load>
HWY_INLINE Lanes score(const RelativeBias& t, Lanes s, ScoreRow row, int64_t j, const Load& load) {
  const int64_t width = t.table.shape()[1], reach = width / 2, at = j - row.i + reach, lanes = lane_count();
  const float* table = raw<float>(t.table) + row.h * width;
  if (at >= 0 && at + lanes <= width) return s + load(table + at);
  HWY_ALIGN float values[kLanes];
  for (int64_t lane = 0; lane < lanes; ++lane) values[lane] = table[std::clamp<int64_t>(at + lane, 0, width - 1)];
  return s + hn::Load(FloatTag(), values);
}
inline HWY_ATTR void block_gradient(const RelativeBias& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x, const float* ds,
                                    int64_t stride) {
  const int64_t width = t.table.shape()[1], reach = width / 2, lanes = lane_count();
  for_diagonals(x, ds, stride, [&](int64_t distance, Lanes total) HEED_LANES {
    float* to = sinks[0] + distance + reach;
    if (distance >= -reach && distance + lanes <= width - reach) return (Lanes::load(to) + total).store(to);
    HWY_ALIGN float values[kLanes];
    hn::Store(total.v, FloatTag(), values);
    for (int64_t lane = 0; lane < lanes; ++lane) sinks[0][std::clamp(distance + lane, -reach, reach) + reach] += values[lane];
  });
}

// visit(row, first key, how many, where in the head's table they begin, whether the table has a place of its own for each) for
// every query and every piece of a row of the grid.
template <class Visit>
HWY_INLINE void for_table_pieces(const RelativeBias2d& t, const ScoreBlock& x, const Visit& visit) {
  const int64_t reach = t.table.shape()[1] / 2, width = t.table.shape()[2], side = width / 2;
  for (int64_t r = 0; r < x.rows(); ++r) {
    const int64_t row = (x.i0 + r) / t.width, column = (x.i0 + r) % t.width;
    for_grid_rows(t.width, x, [&](int64_t j, int64_t count, int64_t key_row, int64_t key_column) HWY_ATTR {
      const int64_t along = key_column - column, down = std::clamp<int64_t>(key_row - row, -reach, reach);
      visit(r, j, count, (down + reach) * width, along + side, along >= -side && along + count - 1 <= side);
    });
  }
}
inline HWY_ATTR void block_score(const RelativeBias2d& t, const ScoreBlock& x, float* s, int64_t stride) {
  const int64_t width = t.table.shape()[2];
  const float* table = raw<float>(t.table) + x.h * t.table.shape()[1] * width;
  for_table_pieces(t, x, [&](int64_t r, int64_t j, int64_t count, int64_t line, int64_t at, bool whole) HWY_ATTR {
    float* to = s + r * stride + j;
    if (whole) {
      const float* from = table + line + at;
      for_lanes(count, [&](int64_t c, auto load, auto store) HEED_LANES { store(to + c, load(to + c) + load(from + c)); });
    } else {
      for (int64_t c = 0; c < count; ++c) to[c] += table[line + std::clamp<int64_t>(at + c, 0, width - 1)];
    }
  });
}
inline HWY_ATTR void block_gradient(const RelativeBias2d& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x,
                                    const float* ds, int64_t stride) {
  const int64_t width = t.table.shape()[2];
  for_table_pieces(t, x, [&](int64_t r, int64_t j, int64_t count, int64_t line, int64_t at, bool whole) HWY_ATTR {
    const float* d = ds + r * stride + j;
    if (whole) {
      float* to = sinks[0] + line + at;
      for_lanes(count, [&](int64_t c, auto load, auto store) HEED_LANES { store(to + c, load(to + c) + load(d + c)); });
    } else {
      for (int64_t c = 0; c < count; ++c) sinks[0][line + std::clamp<int64_t>(at + c, 0, width - 1)] += d[c];
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
