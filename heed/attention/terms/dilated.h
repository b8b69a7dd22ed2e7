// Dilated mask: every step-th key (Child et al., Sparse Transformers, 2019).
#ifndef HEED_ATTENTION_TERMS_DILATED_H_
#define HEED_ATTENTION_TERMS_DILATED_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct DilatedArgs {
  static constexpr bool is_mask = true;
  int64_t step;
};

#ifndef __CUDACC__
struct Dilated {  // keep j - i divisible by step
  static constexpr const char* name = "Dilated";
  int64_t step = 1;
  void check_sizes(const AttentionSizes&) const { check(step >= 1, "attention: Dilated by ", step, ", expected 1 or more"); }
  static TermInfo info() {
    return {.name = "dilated",
            .aliases = {"dilation"},
            .summary = "keeps every step-th key: j - i divisible by step",
            .source = "Child et al. 2019",
            .use = TermUse::pattern,
            .masks = true,
            .settings = {{"step", "distance between kept keys", 1, 1}}};
  }
  static Dilated make(const TermInput& in) { return {in.whole("step")}; }
  VisibleKeys visible(int64_t, int64_t N) const { return {{{0, N}}, step}; }
  DilatedArgs args() const { return {step}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT auto keep(const DilatedArgs& t, const ScoreRow& row, Keys<V> j) {
  const V step = static_cast<float>(t.step), distance = numbers(j) - V(static_cast<float>(row.i));
  return floor(distance / step + V(0.5f)) * step == distance;
}
#endif
