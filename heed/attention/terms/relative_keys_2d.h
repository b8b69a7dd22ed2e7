// Relative positions on a grid that depend on content: RelativeKeys for pixels (Cordonnier et al. 2020). The vector of an offset is that of
// its rows plus that of its columns, so that a query is multiplied with rows + columns vectors, not with one for every pair of them.
#ifndef HEED_ATTENTION_TERMS_RELATIVE_KEYS_2D_H_
#define HEED_ATTENTION_TERMS_RELATIVE_KEYS_2D_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct RelativeKeys2dArgs {
  const float *queries, *table;  // (B, H, N, depth), (H, rows + columns, depth)
  int64_t head, item;            // strides of queries
  int64_t rows, columns, depth;  // 2 R + 1, 2 C + 1, W
  int64_t width;                 // of the grid

  HEED_HOST_DEVICE int64_t entries() const { return rows + columns; }
  HEED_HOST_DEVICE const float* query(const ScoreRow& row) const {
    return queries + row.b * item + row.h * head + (row.i - row.first) * depth;
  }
  // The vectors of the table for a query and a key.
  HEED_HOST_DEVICE int64_t row_entry(int64_t i, int64_t j) const { return clamp_index(j / width - i / width + rows / 2, 0, rows - 1); }
  HEED_HOST_DEVICE int64_t column_entry(int64_t i, int64_t j) const {
    return rows + clamp_index(j % width - i % width + columns / 2, 0, columns - 1);
  }
};

#ifndef __CUDACC__
struct RelativeKeys2d {  // + queries[b, h, i] . (row[h, clamp(rows apart, -R, R)] + column[h, clamp(columns apart, -C, C)]): key - query
  static constexpr const char* name = "RelativeKeys2d";
  Tensor queries;     // (B, H, N, W), learned, any width W
  Tensor table;       // (H, 2 R + 1 + 2 C + 1, W), learned: a vector per offset in rows, then one per offset in columns
  int64_t reach = 0;  // R
  int64_t width = 1;  // of the grid: token t is at row t / width, column t % width
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    const int64_t depth = last_of(queries), entries = table.defined() && table.rank() == 3 ? table.size(1) : 0;
    return {{"queries", queries, {z.B, z.H, z.N, depth}, Sums::queries}, {"table", table, {z.H, entries, depth}, Sums::table}};
  }
  void check_sizes(const AttentionSizes&) const {
    const int64_t columns = table.size(1) - (2 * reach + 1);
    check(reach >= 0 && width >= 1 && columns >= 1 && columns % 2 == 1, "attention: RelativeKeys2d's table has ", table.size(1),
          " rows with reach ", reach, " and grid width ", width, ", expected 2 R + 1 + 2 C + 1 rows and a width of 1 or more");
  }
  static TermInfo info() {
    return {.name = "relative_content_2d",
            .aliases = {"relative_keys_2d"},
            .summary = "adds the product of the query with a vector per head and offset on a grid, projected from its sinusoids",
            .source = "Cordonnier et al. 2020",
            .use = TermUse::position,
            .needs_grid = true,
            .needs_content = true,
            .needs_all_tokens = true,
            .products = 1};
  }
  RelativeKeys2dArgs args() const {
    const int64_t depth = table.shape()[2], head = queries.shape()[2] * depth, rows = 2 * reach + 1;
    return {raw<float>(queries), raw<float>(table), head, queries.shape()[1] * head, rows, table.shape()[1] - rows, depth, width};
  }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V, class Load>
HEED_ELEMENT V score(const RelativeKeys2dArgs& t, V s, const ScoreRow& row, Keys<V> j, const Load&) {
  const float *query = t.query(row), *table = t.table + row.h * t.entries() * t.depth;
  return s + from_each(j, [&](int64_t key) {
           const float *by_row = table + t.row_entry(row.i, key) * t.depth, *by_column = table + t.column_entry(row.i, key) * t.depth;
           float sum = 0;
           for (int64_t d = 0; d < t.depth; ++d) sum += query[d] * (by_row[d] + by_column[d]);
           return sum;
         });
}
#endif

#ifdef HEED_TERM_BLOCKS
// visit(row, first key, how many, entry of their row, entry of the first one's column, whether the entries of the columns follow each
// other)
template <class Visit>
HWY_INLINE void for_entries(const RelativeKeys2dArgs& t, const ScoreBlock& x, const Visit& visit) {
  const int64_t side = t.columns / 2;
  for (int64_t r = 0; r < x.rows(); ++r) {
    const int64_t i = x.i0 + r, column = i % t.width;
    for_grid_rows(t.width, x, [&](int64_t j, int64_t count, int64_t, int64_t key_column) HWY_ATTR {
      const int64_t along = key_column - column;
      visit(r, j, count, t.row_entry(i, x.j0 + j), t.column_entry(i, x.j0 + j), along >= -side && along + count - 1 <= side);
    });
  }
}
// Products of every query with every vector of the table; each score uses two of them.
inline HWY_ATTR void block_score(const RelativeKeys2dArgs& t, const ScoreBlock& x, float* s, int64_t stride) {
  const int64_t columns = whole_registers(t.entries());
  const Tensor transposed = Tensor::zeros({t.depth, columns}, kCpu), products = Tensor::empty({x.rows(), columns}, kCpu);
  const float* table = t.table + x.h * t.entries() * t.depth;
  for (int64_t entry = 0; entry < t.entries(); ++entry)
    for (int64_t d = 0; d < t.depth; ++d) raw<float>(transposed)[d * columns + entry] = table[entry * t.depth + d];
  tile_product({t.query({x.b, x.h, x.i0, x.first}), t.depth, 1}, raw<float>(transposed), columns, InitialScores{}, raw<float>(products),
               columns, x.rows(), columns, t.depth);
  for_entries(t, x, [&](int64_t r, int64_t j, int64_t count, int64_t row_entry, int64_t column_entry, bool whole) HWY_ATTR {
    const float* from = raw<float>(products) + r * columns;
    float* to = s + r * stride + j;
    const float by_row = from[row_entry];
    if (whole) {
      for_lanes(count, [&](int64_t c, auto load, auto store)
                           HEED_LANES { store(to + c, load(to + c) + load(from + column_entry + c) + Lanes(by_row)); });
    } else {
      for (int64_t c = 0; c < count; ++c) to[c] += by_row + from[t.column_entry(x.i0 + r, x.j0 + j + c)];
    }
  });
}
// The gradients of these products, and from them those of queries and table.
inline HWY_ATTR void block_gradient(const RelativeKeys2dArgs& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x,
                                    const float* ds, int64_t stride) {
  const int64_t entries = t.entries(), depth = t.depth, columns = whole_registers(entries), wide = whole_registers(depth);
  const Tensor products = Tensor::zeros({x.rows(), columns}, kCpu), queries = Tensor::zeros({x.rows(), wide}, kCpu),
               table = Tensor::zeros({entries, wide}, kCpu), dqueries = Tensor::empty({x.rows(), wide}, kCpu),
               dtable = Tensor::empty({entries, wide}, kCpu);
  for_entries(t, x, [&](int64_t r, int64_t j, int64_t count, int64_t row_entry, int64_t column_entry, bool whole) HWY_ATTR {
    const float* d = ds + r * stride + j;
    float *to = raw<float>(products) + r * columns, sum = 0;
    for (int64_t c = 0; c < count; ++c) sum += d[c];
    to[row_entry] += sum;
    if (whole) {
      float* at = to + column_entry;
      for_lanes(count, [&](int64_t c, auto load, auto store) HEED_LANES { store(at + c, load(at + c) + load(d + c)); });
    } else {
      for (int64_t c = 0; c < count; ++c) to[t.column_entry(x.i0 + r, x.j0 + j + c)] += d[c];
    }
  });
  for (int64_t r = 0; r < x.rows(); ++r) std::copy_n(t.query({x.b, x.h, x.i0 + r, x.first}), depth, raw<float>(queries) + r * wide);
  for (int64_t entry = 0; entry < entries; ++entry)
    std::copy_n(t.table + (x.h * entries + entry) * depth, depth, raw<float>(table) + entry * wide);
  tile_product({raw<float>(products), columns, 1}, raw<float>(table), wide, InitialScores{}, raw<float>(dqueries), wide, x.rows(), wide,
               entries);
  tile_product({raw<float>(products), 1, columns}, raw<float>(queries), wide, InitialScores{}, raw<float>(dtable), wide, entries, wide,
               x.rows());
  const auto add = [depth](float* to, const float* from) HWY_ATTR {
    for_lanes(depth, [&](int64_t d, auto load, auto store) HEED_LANES { store(to + d, load(to + d) + load(from + d)); });
  };
  for (int64_t r = 0; r < x.rows(); ++r) add(sinks[0] + (x.i0 - x.first + r) * depth, raw<float>(dqueries) + r * wide);
  for (int64_t entry = 0; entry < entries; ++entry) add(sinks[1] + entry * depth, raw<float>(dtable) + entry * wide);
}
#endif
