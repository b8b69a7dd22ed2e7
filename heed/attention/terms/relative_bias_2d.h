// Learned relative positions on a grid: a bias for every offset in rows and columns, per head (Liu et al., Swin, 2021).
#ifndef HEED_ATTENTION_TERMS_RELATIVE_BIAS_2D_H_
#define HEED_ATTENTION_TERMS_RELATIVE_BIAS_2D_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct RelativeBias2dArgs {
  const float* table;     // (H, rows, columns)
  int64_t rows, columns;  // 2 R + 1, 2 C + 1
  int64_t width;
};
HEED_HOST_DEVICE inline int64_t table_size(const RelativeBias2dArgs& t) { return t.rows * t.columns; }  // of a head
HEED_HOST_DEVICE inline int64_t table_entry(const RelativeBias2dArgs& t, int64_t i, int64_t j) {
  const int64_t row = clamp_index(j / t.width - i / t.width + t.rows / 2, 0, t.rows - 1);
  return row * t.columns + clamp_index(j % t.width - i % t.width + t.columns / 2, 0, t.columns - 1);
}

#ifndef __CUDACC__
struct RelativeBias2d {  // + table[h, clamp(rows apart, -R, R) + R, clamp(columns apart, -C, C) + C]: key - query on a grid
  static constexpr const char* name = "RelativeBias2d";
  Tensor table;       // (H, 2 R + 1, 2 C + 1), learned
  int64_t width = 1;  // of the grid: token t is at row t / width, column t % width
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"table", table, {z.H, table.defined() && table.rank() == 3 ? table.size(1) : 0, last_of(table)}, Sums::table}};
  }
  void check_sizes(const AttentionSizes&) const {
    check(table.size(1) % 2 == 1 && table.size(2) % 2 == 1 && width >= 1, "attention: RelativeBias2d's table has shape ", table.shape(),
          " and the grid width ", width, ", expected (H, 2 R + 1, 2 C + 1) and 1 or more");
  }
  static TermInfo info() {
    return {.name = "relative_2d",
            .aliases = {"relative_bias_2d"},
            .summary = "adds a learned bias per head and offset on a grid",
            .source = "Liu et al. 2021",
            .use = TermUse::position,
            .needs_grid = true,
            .settings = {{"rows", "largest row offset with its own bias; by default that of the grid",
                          [](const TermPlace& place, auto&) { return static_cast<double>(place.rows - 1); }},
                         {"columns", "largest column offset with its own bias; by default that of the grid",
                          [](const TermPlace& place, auto&) { return static_cast<double>(place.columns - 1); }}},
            .parameters = {{"table",
                            "relative_table",
                            "add relative_table[h, clamp(y, -rows, rows) + rows,\nclamp(x, -columns, columns) + columns], y rows and x "
                            "columns from query to key",
                            {{1, 2, "rows"}, {1, 2, "columns"}}}}};
  }
  static RelativeBias2d make(const TermInput& in) { return {in.tensors[0], in.place.columns}; }
  RelativeBias2dArgs args() const { return {raw<float>(table), table.shape()[1], table.shape()[2], width}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V, class Load>
HEED_ELEMENT V score(const RelativeBias2dArgs& t, V s, const ScoreRow& row, Keys<V> j, const Load&) {
  const float* table = t.table + row.h * table_size(t);
  return s + from_each(j, [&](int64_t key) { return table[table_entry(t, row.i, key)]; });
}
#endif

#ifdef HEED_TERM_BLOCKS
// visit(row, first key, how many, row of the head's table, column of the first key, whether the table has a column for each) for every
// query and every part of a row of the grid.
template <class Visit>
HWY_INLINE void for_table_rows(const RelativeBias2dArgs& t, const ScoreBlock& x, const Visit& visit) {
  const int64_t reach = t.rows / 2, side = t.columns / 2;
  for (int64_t r = 0; r < x.rows(); ++r) {
    const int64_t row = (x.i0 + r) / t.width, column = (x.i0 + r) % t.width;
    for_grid_rows(t.width, x, [&](int64_t j, int64_t count, int64_t key_row, int64_t key_column) HWY_ATTR {
      const int64_t along = key_column - column, down = std::clamp<int64_t>(key_row - row, -reach, reach);
      visit(r, j, count, (down + reach) * t.columns, along + side, along >= -side && along + count - 1 <= side);
    });
  }
}
inline HWY_ATTR void block_score(const RelativeBias2dArgs& t, const ScoreBlock& x, float* s, int64_t stride) {
  const float* table = t.table + x.h * table_size(t);
  for_table_rows(t, x, [&](int64_t r, int64_t j, int64_t count, int64_t line, int64_t at, bool whole) HWY_ATTR {
    float* to = s + r * stride + j;
    if (whole) {
      const float* from = table + line + at;
      for_lanes(count, [&](int64_t c, auto load, auto store) HEED_LANES { store(to + c, load(to + c) + load(from + c)); });
    } else {
      for (int64_t c = 0; c < count; ++c) to[c] += table[line + clamp_index(at + c, 0, t.columns - 1)];
    }
  });
}
inline HWY_ATTR void block_gradient(const RelativeBias2dArgs& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x,
                                    const float* ds, int64_t stride) {
  for_table_rows(t, x, [&](int64_t r, int64_t j, int64_t count, int64_t line, int64_t at, bool whole) HWY_ATTR {
    const float* d = ds + r * stride + j;
    if (whole) {
      float* to = sinks[0] + line + at;
      for_lanes(count, [&](int64_t c, auto load, auto store) HEED_LANES { store(to + c, load(to + c) + load(d + c)); });
    } else {
      for (int64_t c = 0; c < count; ++c) sinks[0][line + clamp_index(at + c, 0, t.columns - 1)] += d[c];
    }
  });
}
#endif
