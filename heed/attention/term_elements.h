// Functions of one score, for every term. No include guard: read inside a namespace that has
//   HEED_ELEMENT and Keys<V>: some consecutive keys, as many as V has values, from `first` on
//   for V: + - * / < > ==, abs, floor, fma, log, tanh, select
//   numbers(keys): their positions; lane_count(keys): how many; from_each(keys, f): f(key) of each; truth(keys, b), truths(keys, p, n)
// by term_lanes.h, where V is Lanes, and by scalar_terms.h, where it is float. Each term has
//   score(term, s, row, keys, load): the score after it; or, for a mask, keep(term, row, keys)
// and if it is learned
//   add_gradient(term, sums, ds, row, keys), finish_gradient(term, h, sums, totals): for few numbers per head
//   table_entry(term, i, j): for a table, the entry whose gradient ds is added to
// and if it is not linear, slope(term, s).

// Positions of tokens on a grid: token t is at row t / width, column t % width.
template <class V>
struct GridPlaces {
  V row, column;
};
template <class V>
HEED_ELEMENT GridPlaces<V> grid_places(int64_t width, Keys<V> j) {
  const V across = static_cast<float>(width), key = numbers(j), row = floor((key + V(0.5f)) / across);
  return {row, fma(-row, across, key)};
}

// Position of query i - position of keys - center.
template <class V>
struct GridOffset {
  V rows, columns;
};
template <class V>
HEED_ELEMENT GridOffset<V> grid_offset(const float* center, int64_t width, int64_t i, const GridPlaces<V>& key) {
  return {V(static_cast<float>(i / width) - center[0]) - key.row, V(static_cast<float>(i % width) - center[1]) - key.column};
}

#define HEED_TERM_ELEMENTS
#include "heed/attention/term_files.h"
#undef HEED_TERM_ELEMENTS

// Masks keep or drop; terms with a center on a grid have functions of the offset.
template <class T, class V, class Load>
HEED_ELEMENT V score(const T& t, V s, const ScoreRow& row, Keys<V> j, const Load&) {
  if constexpr (kIsMask<T>) {
    return select(keep(t, row, j), s, V(-HUGE_VALF));
  } else {
    return score_at(t, row.h, s, grid_offset(t.center + 2 * row.h, t.width, row.i, grid_places(t.width, j)));
  }
}
template <class T, class V>
HEED_ELEMENT void add_gradient(const T& t, V* sums, V ds, const ScoreRow& row, Keys<V> j) {
  add_gradient_at(t, sums, ds, grid_offset(t.center + 2 * row.h, t.width, row.i, grid_places(t.width, j)));
}
