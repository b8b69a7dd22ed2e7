// Sliding window with global tokens (Beltagy et al., Longformer, 2020).
#ifndef HEED_ATTENTION_TERMS_WINDOW_H_
#define HEED_ATTENTION_TERMS_WINDOW_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct WindowArgs {
  static constexpr bool is_mask = true;
  int64_t before, after, globals;
};
HEED_HOST_DEVICE inline KeyRange reach(const WindowArgs& t, const ScoreBlock& x) {
  if (x.i0 < t.globals) return {x.j0, x.j1};
  const int64_t end = x.i1 + t.after;
  return {x.j0 < t.globals ? x.j0 : x.i0 - t.before, end > t.globals ? end : t.globals};
}
HEED_HOST_DEVICE inline bool idle(const WindowArgs& t, const ScoreBlock& x) {
  return x.j1 - 1 <= x.i0 + t.after && x.j0 >= x.i1 - 1 - t.before;
}

#ifndef __CUDACC__
struct Window {  // keep i - before <= j <= i + after; the first `globals` tokens see and are seen by all
  static constexpr const char* name = "Window";
  int64_t before = 0, after = 0, globals = 0;
  void check_sizes(const AttentionSizes&) const {
    check(before >= 0 && after >= 0 && globals >= 0, "attention: Window{", before, ", ", after, ", ", globals, "}, expected 0 or more");
  }
  static TermInfo info() {
    return {.name = "window",
            .aliases = {"sliding_window"},
            .summary = "keeps the keys near the query: i - before <= j <= i + after; the first globals tokens see and are seen by all",
            .source = "Beltagy et al. 2020",
            .use = TermUse::pattern,
            .masks = true,
            .settings = {{"before", "keys before the query", 0},
                         {"after", "keys after the query; by default as many as before", [](auto&, auto& v) { return v.at("before"); }},
                         {"globals", "number of first tokens that see all tokens and are seen by all", 0}}};
  }
  static Window make(const TermInput& in) { return {in.whole("before"), in.whole("after"), in.whole("globals")}; }
  VisibleKeys visible(int64_t i, int64_t N) const {
    if (i < globals) return {{{0, N}}};
    if (globals >= i - before) return {{{0, std::max(globals, i + after + 1)}}};
    return {{{0, globals}, {i - before, i + after + 1}}};
  }
  WindowArgs args() const { return {before, after, globals}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT auto keep(const WindowArgs& t, const ScoreRow& row, Keys<V> keys) {
  const V j = numbers(keys);
  const auto near = !(j > V(static_cast<float>(row.i + t.after))) && !(j < V(static_cast<float>(row.i - t.before)));
  return row.i < t.globals ? j == j : near || j < V(static_cast<float>(t.globals));
}
#endif
