// Gradients of score terms from a tile of gradients of scores. A block owns its sinks (a part of the queries of a head), so that sums over
// tiles and over the elements of a tile have a fixed order without atomics.
#pragma once

#include "heed/attention/score_tile.cuh"
#include "heed/cuda/block_reduce.cuh"

namespace heed::cuda {

// Sums of the diagonals of a tile, two for every distance of a query and a key on a grid.
inline constexpr int kMostDiagonals = 2 * (2 * kTile - 1);
struct TermScratch {
  float sums[kMostDiagonals];
  int entries[kMostDiagonals];
  float reduce[32];
};

template <class T>
inline constexpr bool kHasNumbers = requires {
  T::sums;
};
template <class T>
inline constexpr bool kHasTable = requires(const T& t) {
  table_entry(t, int64_t{}, int64_t{});
};

// A few numbers per head: every thread sums its elements.
template <class T>
__device__ void numbers_gradient(const T& t, const GradientSink* sinks, int64_t part, int64_t head, const ScoreBlock& x, ScoreTile ds,
                                 TermScratch& scratch) {
  float sums[T::sums] = {};
  for_own_elements(x, [&](int query, int key) {
    scalar::add_gradient(t, sums, ds.at(query, key), ScoreRow{x.b, x.h, x.i0 + query, x.first}, scalar::Keys<float>{x.j0 + key});
  });
#pragma unroll
  for (int n = 0; n < T::sums; ++n) sums[n] = block_sum(sums[n], scratch.reduce);
  if (threadIdx.x != 0) return;
  float totals[T::totals] = {};
  scalar::finish_gradient(t, x.h, sums, totals);
#pragma unroll
  for (int n = 0; n < T::totals; ++n) {  // first those of the first parameter
    const int of_first = static_cast<int>(sinks[0].per_head);
    float* to = n < of_first ? sinks[0].at(part, head) + n : sinks[1].at(part, head) + n - of_first;
    *to += totals[n];
  }
}

// The entries of a tile's diagonals and, where `sums` is wanted, the sums of their gradients. The entry of a table depends on the distance
// of query and key alone. On a grid it depends on their distances by rows and columns, and tokens that are some distance apart have two
// of these: the key's column is before the query's, or it is not. Returns how many there are; entries that no score has are -1.
template <class T>
__device__ int sum_diagonals(const T& t, const ScoreBlock& x, ScoreTile ds, TermScratch& scratch) {
  constexpr bool grid = std::is_same_v<T, RelativeBias2dArgs>;
  const int rows = static_cast<int>(x.rows()), keys = static_cast<int>(x.keys()), diagonals = rows + keys - 1,
            count = diagonals * (grid ? 2 : 1);
  for (int item = threadIdx.x; item < count; item += kBlockThreads) {
    const int distance = item % diagonals - (rows - 1);
    const int first = max(0, -distance), end = min(rows, keys - distance);
    float sum = 0;
    int entry = -1;
    if constexpr (grid) {
      const int width = static_cast<int>(t.width);
      int query_column = static_cast<int>((x.i0 + first) % t.width), key_column = static_cast<int>((x.j0 + first + distance) % t.width);
      const bool before = item >= diagonals;
      for (int query = first; query < end; ++query) {
        if ((key_column < query_column) == before) {
          if (entry < 0) entry = static_cast<int>(table_entry(t, x.i0 + query, x.j0 + query + distance));
          sum += ds.at(query, query + distance);
        }
        query_column = query_column + 1 == width ? 0 : query_column + 1;
        key_column = key_column + 1 == width ? 0 : key_column + 1;
      }
    } else {
      entry = static_cast<int>(table_entry(t, x.i0 + first, x.j0 + first + distance));
      for (int query = first; query < end; ++query) sum += ds.at(query, query + distance);
    }
    scratch.sums[item] = sum;
    scratch.entries[item] = entry;
  }
  __syncthreads();
  return count;
}

// Diagonals with the same entry are summed by the first of them.
template <class T>
__device__ void table_gradient(const T& t, float* sink, const ScoreBlock& x, ScoreTile ds, TermScratch& scratch) {
  const int count = sum_diagonals(t, x, ds, scratch);
  for (int item = threadIdx.x; item < count; item += kBlockThreads) {
    const int entry = scratch.entries[item];
    bool first = entry >= 0;
    float total = 0;
    for (int other = 0; other < count; ++other)
      if (scratch.entries[other] == entry) {
        first = first && other >= item;
        total += scratch.sums[other];
      }
    if (first) sink[entry] += total;
  }
}

// queries[i] gets the sum over keys of ds table[entry], an entry of the table the sum of ds queries[i].
static __device__ void relative_keys_gradient(const RelativeKeysArgs& t, float* dqueries, float* dtable, const ScoreBlock& x, ScoreTile ds,
                                              TermScratch& scratch) {
  const int rows = static_cast<int>(x.rows()), keys = static_cast<int>(x.keys());
  const int count = sum_diagonals(t, x, ds, scratch);
  const float *table = t.table + x.h * t.distances * t.width, *queries = t.query({x.b, x.h, x.i0, x.first});
  for (int64_t at = threadIdx.x; at < rows * t.width; at += kBlockThreads) {
    const int query = static_cast<int>(at / t.width);
    const int64_t d = at % t.width;
    float sum = 0;
    for (int key = 0; key < keys; ++key) sum = fmaf(ds.at(query, key), table[scratch.entries[key - query + rows - 1] * t.width + d], sum);
    dqueries[(x.i0 - x.first) * t.width + at] += sum;
  }
  for (int64_t at = threadIdx.x; at < count * t.width; at += kBlockThreads) {
    const int item = static_cast<int>(at / t.width), entry = scratch.entries[item];
    const int64_t d = at % t.width;
    bool first = true;
    for (int other = 0; other < item && first; ++other) first = scratch.entries[other] != entry;
    if (!first) continue;
    float total = 0;
    for (int other = item; other < count; ++other) {
      if (scratch.entries[other] != entry) continue;
      const int distance = other - (rows - 1);
      for (int query = max(0, -distance); query < min(rows, keys - distance); ++query)
        total = fmaf(ds.at(query, query + distance), queries[query * t.width + d], total);
    }
    dtable[entry * t.width + d] += total;
  }
}

// The sum of ds over the keys of a query for which an entry of the table is used.
static __device__ float entry_gradient(const RelativeKeys2dArgs& t, const ScoreBlock& x, ScoreTile ds, int query, int64_t entry) {
  const int64_t i = x.i0 + query;
  float sum = 0;
  if (entry < t.rows) {  // keys of one row of the grid; of all rows beyond the ends of the table
    const int64_t row = i / t.width + entry - t.rows / 2, first = entry == 0 ? x.j0 : max(x.j0, row * t.width),
                  end = entry == t.rows - 1 ? x.j1 : min(x.j1, (row + 1) * t.width);
    for (int64_t j = first; j < end; ++j) sum += ds.at(query, static_cast<int>(j - x.j0));
  } else {
    for (int64_t j = x.j0; j < x.j1; ++j)
      if (t.column_entry(i, j) == entry) sum += ds.at(query, static_cast<int>(j - x.j0));
  }
  return sum;
}

// The same on a grid: an entry's queries are summed for a few entries at a time.
static __device__ void relative_keys_2d_gradient(const RelativeKeys2dArgs& t, float* dqueries, float* dtable, const ScoreBlock& x,
                                                 ScoreTile ds, TermScratch& scratch) {
  const int rows = static_cast<int>(x.rows()), keys = static_cast<int>(x.keys()), entries = static_cast<int>(t.entries());
  const float *table = t.table + x.h * entries * t.depth, *queries = t.query({x.b, x.h, x.i0, x.first});
  for (int64_t at = threadIdx.x; at < rows * t.depth; at += kBlockThreads) {
    const int query = static_cast<int>(at / t.depth);
    const int64_t d = at % t.depth, i = x.i0 + query;
    float sum = 0;
    for (int key = 0; key < keys; ++key) {
      const int64_t j = x.j0 + key;
      sum = fmaf(ds.at(query, key), table[t.row_entry(i, j) * t.depth + d] + table[t.column_entry(i, j) * t.depth + d], sum);
    }
    dqueries[(x.i0 - x.first) * t.depth + at] += sum;
  }
  const int at_once = kMostDiagonals / rows;
  for (int first = 0; first < entries; first += at_once) {
    const int count = min(at_once, entries - first);
    __syncthreads();  // the sums of the last entries have been read
    for (int item = threadIdx.x; item < count * rows; item += kBlockThreads)
      scratch.sums[item] = entry_gradient(t, x, ds, item % rows, first + item / rows);
    __syncthreads();
    for (int64_t at = threadIdx.x; at < count * t.depth; at += kBlockThreads) {
      const int64_t d = at % t.depth;
      const float* sums = scratch.sums + at / t.depth * rows;
      float total = 0;
      for (int query = 0; query < rows; ++query) total = fmaf(sums[query], queries[query * t.depth + d], total);
      dtable[first * t.depth + at] += total;
    }
  }
}

// Backwards, last term first: a term that is not linear changes ds, a learned one adds to its sinks. raw: the scores before all terms, read
// only if a term is not linear. Every thread of the block must see ds before, and may read it after the next barrier.
static __noinline__ __device__ void unapply_terms(const AttentionBackward& w, const ScoreBlock& x, int64_t part, ScoreTile raw,
                                                  ScoreTile ds, TermScratch& scratch) {
  const TermSequence& terms = w.scores.terms;
  const AttentionSizes& z = w.scores.sizes;
  const int64_t head = x.b * z.H + x.h;
  for (int index = terms.count - 1; index >= 0; --index) {
    const GradientSink* sinks = w.sinks[index];
    visit_term(terms[index], [&]<class T>(const T& t) {
      if constexpr (kIsNonlinear<T>) {
        multiply_slopes(terms, index, x, raw, ds);
        __syncthreads();
      } else {
        if (!sinks[0].data) return;
        if constexpr (kHasNumbers<T>) {
          numbers_gradient(t, sinks, part, head, x, ds, scratch);
        } else if constexpr (std::is_same_v<T, BiasArgs>) {
          float* map = sinks[0].at(part, head);
          for_own_elements(x, [&](int query, int key) { map[(x.i0 - x.first + query) * z.M + x.j0 + key] = ds.at(query, key); });
        } else if constexpr (std::is_same_v<T, RelativeKeysArgs>) {
          relative_keys_gradient(t, sinks[0].at(part, head), sinks[1].at(part, head), x, ds, scratch);
        } else if constexpr (std::is_same_v<T, RelativeKeys2dArgs>) {
          relative_keys_2d_gradient(t, sinks[0].at(part, head), sinks[1].at(part, head), x, ds, scratch);
        } else if constexpr (kHasTable<T>) {
          table_gradient(t, sinks[0].at(part, head), x, ds, scratch);
        }
        __syncthreads();
      }
    });
  }
}

}  // namespace heed::cuda
