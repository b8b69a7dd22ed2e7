// Any tensor added to the scores.
#ifndef HEED_ATTENTION_TERMS_BIAS_H_
#define HEED_ATTENTION_TERMS_BIAS_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct BiasArgs {
  BroadcastMap<float> values;
};

#ifndef __CUDACC__
struct Bias {  // + values[b, h, i, j]; -infinity masks
  static constexpr const char* name = "Bias";
  Tensor values;  // f32, broadcasts to (B, H, N, M); learned if it requires a gradient
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"values", values, {z.B, z.H, z.N, z.M}, Sums::map, DType::f32, true}};
  }
  static TermInfo info() { return {.name = "bias", .summary = "adds a tensor that broadcasts to the scores"}; }
  BiasArgs args() const { return {broadcast_map<float>(values)}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V, class Load>
HEED_ELEMENT V score(const BiasArgs& t, V s, const ScoreRow& row, Keys<V> j, const Load& load) {
  const float* from = t.values.row(row);
  return s + (t.values.same_for_all_keys() ? V(*from) : load(from + j.first));
}
#endif

#ifdef HEED_TERM_BLOCKS
inline InitialScores initial_scores(const BiasArgs& t, const AttentionSizes& z, const ScoreBlock& x, int64_t columns) {
  if (t.values.same_for_all_keys() || x.j0 + columns > z.M) return {};
  return {t.values.row({x.b, x.h, x.i0, x.first}) + x.j0, t.values.query};
}
// The sink is this head's (N, M) map.
inline void block_gradient(const BiasArgs&, float* const* sinks, const AttentionSizes& z, const ScoreBlock& x, const float* ds,
                           int64_t stride) {
  for (int64_t i = x.i0; i < x.i1; ++i) std::copy_n(ds + (i - x.i0) * stride, x.keys(), sinks[0] + (i - x.first) * z.M + x.j0);
}
#endif
