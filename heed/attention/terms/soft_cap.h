// Scores bounded by a smooth curve (Gemma 2, 2024). It is not linear, so it also scales the gradients of everything
// before it; masked scores stay masked.
#ifndef HEED_ATTENTION_TERMS_SOFT_CAP_H_
#define HEED_ATTENTION_TERMS_SOFT_CAP_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct SoftCapArgs {
  static constexpr bool is_nonlinear = true;
  float limit;
};

#ifndef __CUDACC__
struct SoftCap {  // limit tanh(s / limit)
  static constexpr const char* name = "SoftCap";
  float limit = 50;
  void check_sizes(const AttentionSizes&) const { check(limit > 0, "attention: SoftCap at ", limit, ", expected more than 0"); }
  static TermInfo info() {
    return {.name = "soft_cap",
            .aliases = {"softcap"},
            .summary = "bounds scores smoothly: limit tanh(s / limit)",
            .source = "Gemma 2, 2024",
            .use = TermUse::key,
            .settings = {{"limit", "the bound", 50, 0, TermSetting::Type::number}}};
  }
  static SoftCap make(const TermInput& in) { return {static_cast<float>(in.values.at("limit"))}; }
  SoftCapArgs args() const { return {limit}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V, class Load>
HEED_ELEMENT V score(const SoftCapArgs& t, V s, const ScoreRow&, Keys<V>, const Load&) {
  return select(s == V(-HUGE_VALF), s, V(t.limit) * tanh(s * V(1 / t.limit)));
}
// The derivative of the score with respect to the score before this term, from the score after it.
template <class V>
HEED_ELEMENT V slope(const SoftCapArgs& t, V s) {
  const V share = s * V(1 / t.limit);
  return select(s == V(-HUGE_VALF), V(0.0f), fma(-share, share, V(1.0f)));
}
#endif
