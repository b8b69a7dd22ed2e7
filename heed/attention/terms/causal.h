// Causal mask: a query sees the keys up to its own position.
#ifndef HEED_ATTENTION_TERMS_CAUSAL_H_
#define HEED_ATTENTION_TERMS_CAUSAL_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct CausalArgs {
  static constexpr bool is_mask = true;
  int64_t offset;
};
HEED_HOST_DEVICE inline KeyRange reach(const CausalArgs& t, const ScoreBlock& x) { return {x.j0, x.i1 + t.offset}; }
HEED_HOST_DEVICE inline bool idle(const CausalArgs& t, const ScoreBlock& x) { return x.j1 - 1 <= x.i0 + t.offset; }

#ifndef __CUDACC__
struct Causal {  // keep j <= i + offset: with a cache, offset is the number of keys before the first query
  static constexpr const char* name = "Causal";
  int64_t offset = 0;
  static TermInfo info() {
    return {.name = "causal", .summary = "keeps the keys up to the query: j <= i + offset", .use = TermUse::pattern, .masks = true};
  }
  static Causal make(const TermInput&) { return {}; }
  VisibleKeys visible(int64_t i, int64_t) const { return {{{0, i + 1 + offset}}}; }
  CausalArgs args() const { return {offset}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT auto keep(const CausalArgs& t, const ScoreRow& row, Keys<V> j) {
  return !(numbers(j) > V(static_cast<float>(row.i + t.offset)));
}
#endif
