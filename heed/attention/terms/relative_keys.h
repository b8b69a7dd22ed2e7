// Relative positions that depend on content, the four-term form of Dai et al. 2019 (Transformer-XL). With beta inside the
// queries given here, attention(q + u, k, v) with this term on beta (q + w) has the scores
// beta (q.k + u.k + q.r + w.r), r being the table's row for the distance.
#ifndef HEED_ATTENTION_TERMS_RELATIVE_KEYS_H_
#define HEED_ATTENTION_TERMS_RELATIVE_KEYS_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct RelativeKeysArgs {
  const float *queries, *table;  // (B, H, N, width), (H, distances, width)
  int64_t head, item;            // strides of queries
  int64_t distances, width;      // 2 R + 1, W

  HEED_HOST_DEVICE const float* query(const ScoreRow& row) const {
    return queries + row.b * item + row.h * head + (row.i - row.first) * width;
  }
};
HEED_HOST_DEVICE inline int64_t table_size(const RelativeKeysArgs& t) { return t.distances; }  // rows of `width` numbers, of a head
HEED_HOST_DEVICE inline int64_t table_entry(const RelativeKeysArgs& t, int64_t i, int64_t j) {
  return clamp_index(j - i + t.distances / 2, 0, t.distances - 1);
}

#ifndef __CUDACC__
struct RelativeKeys {  // + queries[b, h, i] . table[h, clamp(j - i, -R, R) + R]
  static constexpr const char* name = "RelativeKeys";
  Tensor queries;  // (B, H, N, W), learned, any width W
  Tensor table;    // (H, 2 R + 1, W), learned
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    const int64_t width = last_of(queries), distances = table.defined() && table.rank() == 3 ? table.size(1) : 0;
    return {{"queries", queries, {z.B, z.H, z.N, width}, Sums::queries}, {"table", table, {z.H, distances, width}, Sums::table}};
  }
  void check_sizes(const AttentionSizes&) const {
    check(table.size(1) % 2 == 1, "attention: RelativeKeys' table has ", table.size(1), " rows, expected an odd number, 2 R + 1");
  }
  static TermInfo info() {
    return {.name = "relative_content",
            .aliases = {"relative_keys"},
            .summary = "adds the product of the query with a vector per head and distance, projected from its sinusoids",
            .source = "Dai et al. 2019",
            .use = TermUse::position,
            .needs_content = true,
            .needs_all_tokens = true,
            .products = 1};
  }
  RelativeKeysArgs args() const {
    const int64_t width = table.shape()[2], head = queries.shape()[2] * width;
    return {raw<float>(queries), raw<float>(table), head, queries.shape()[1] * head, table.shape()[1], width};
  }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V, class Load>
HEED_ELEMENT V score(const RelativeKeysArgs& t, V s, const ScoreRow& row, Keys<V> j, const Load&) {
  const float* query = t.query(row);
  return s + from_each(j, [&](int64_t key) {
           const float* relative = t.table + (row.h * t.distances + table_entry(t, row.i, key)) * t.width;
           float sum = 0;
           for (int64_t d = 0; d < t.width; ++d) sum += query[d] * relative[d];
           return sum;
         });
}
#endif

#ifdef HEED_TERM_BLOCKS
// The distances of a block, from its lower left corner to its upper right one, and their rows of the table, padded to
// whole registers: (count, wide).
struct Distances {
  int64_t count, first, width, wide;
  Tensor rows;

  Distances(const RelativeKeysArgs& t, const ScoreBlock& x)
      : count(distance_count(x)),
        first(first_distance(x)),
        width(t.width),
        wide(whole_registers(width)),
        rows(Tensor::empty({count, wide}, kCpu)) {
    const float* table = t.table + x.h * t.distances * width;
    for (int64_t at = 0; at < count; ++at) {
      float* to = raw<float>(rows) + at * wide;
      std::copy_n(table + entry(t, at) * width, width, to);
      std::fill(to + width, to + wide, 0.0f);
    }
  }
  int64_t entry(const RelativeKeysArgs& t, int64_t at) const { return table_entry(t, 0, first + at); }
};

// Products of every query with every distance of the block; each score uses its own.
inline HWY_ATTR void block_score(const RelativeKeysArgs& t, const ScoreBlock& x, float* s, int64_t stride) {
  const Distances distances(t, x);
  const int64_t columns = whole_registers(distances.count), width = distances.width;
  const Tensor transposed = Tensor::empty({width, columns}, kCpu), products = Tensor::empty({x.rows() + 1, columns}, kCpu);
  for (int64_t d = 0; d < width; ++d)
    for (int64_t at = 0; at < columns; ++at)
      raw<float>(transposed)[d * columns + at] = at < distances.count ? raw<float>(distances.rows)[at * distances.wide + d] : 0.0f;
  tile_product({t.query({x.b, x.h, x.i0, x.first}), width, 1}, raw<float>(transposed), columns, raw<float>(products), columns, x.rows(),
               columns, width, false);
  for (int64_t r = 0; r < x.rows(); ++r) {
    const float* from = raw<float>(products) + r * columns + x.rows() - 1 - r;
    float* to = s + r * stride;
    for_lanes(x.keys(), [&](int64_t j, auto load, auto store) HEED_LANES { store(to + j, load(to + j) + load(from + j)); });
  }
}
inline HWY_ATTR void block_gradient(const RelativeKeysArgs& t, float* const* sinks, const AttentionSizes&, const ScoreBlock& x,
                                    const float* ds, int64_t stride) {
  const Distances distances(t, x);
  const int64_t columns = whole_registers(distances.count), width = distances.width, wide = distances.wide;
  const Tensor shifted = Tensor::zeros({x.rows(), columns}, kCpu), queries = Tensor::zeros({x.rows(), wide}, kCpu);
  const Tensor dqueries = Tensor::empty({x.rows(), wide}, kCpu), drows = Tensor::empty({distances.count, wide}, kCpu);
  for (int64_t r = 0; r < x.rows(); ++r) {
    std::copy_n(ds + r * stride, x.keys(), raw<float>(shifted) + r * columns + x.rows() - 1 - r);
    std::copy_n(t.query({x.b, x.h, x.i0 + r, x.first}), width, raw<float>(queries) + r * wide);
  }
  const auto add = [](float* to, const float* from, int64_t count) HWY_ATTR {
    for_lanes(count, [&](int64_t d, auto load, auto store) HEED_LANES { store(to + d, load(to + d) + load(from + d)); });
  };
  tile_product({raw<float>(shifted), columns, 1}, raw<float>(distances.rows), wide, raw<float>(dqueries), wide, x.rows(), wide,
               distances.count, false);
  for (int64_t r = 0; r < x.rows(); ++r) add(sinks[0] + (x.i0 - x.first + r) * width, raw<float>(dqueries) + r * wide, width);
  tile_product({raw<float>(shifted), 1, columns}, raw<float>(queries), wide, raw<float>(drows), wide, distances.count, wide, x.rows(),
               false);
  for (int64_t at = 0; at < distances.count; ++at) add(sinks[1] + distances.entry(t, at) * width, raw<float>(drows) + at * wide, width);
}
#endif
