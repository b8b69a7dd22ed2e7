// Any boolean mask, score by score.
#ifndef HEED_ATTENTION_TERMS_MASK_H_
#define HEED_ATTENTION_TERMS_MASK_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct MaskArgs {
  static constexpr bool is_mask = true, reads_mask = true;
  BroadcastMap<bool> keep;
};

#ifndef __CUDACC__
struct Mask {  // keep where true
  static constexpr const char* name = "Mask";
  Tensor keep;  // bool, broadcasts to (B, H, N, M): (B, 1, 1, M) masks padding
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    return {{"keep", keep, {z.B, z.H, z.N, z.M}, Sums::none, DType::boolean, true}};
  }
  static TermInfo info() { return {.name = "mask", .summary = "keeps the keys where a boolean tensor is true", .masks = true}; }
  MaskArgs args() const { return {broadcast_map<bool>(keep)}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT auto keep(const MaskArgs& t, const ScoreRow& row, Keys<V> j) {
  const bool* from = t.keep.row(row);
  return t.keep.same_for_all_keys() ? truth(j, *from) : truths(j, from + j.first, t.keep.keys - j.first);
}
#endif

#ifdef HEED_TERM_BLOCKS
// Whether all scores of a block have `value`.
inline bool all_are(bool value, const MaskArgs& t, const ScoreBlock& x) {
  const bool one = t.keep.same_for_all_keys();
  const int64_t keys = one ? 1 : x.keys(), first = one ? 0 : x.j0;
  for (int64_t i = x.i0; i < (t.keep.query == 0 ? x.i0 + 1 : x.i1); ++i) {
    const bool* row = t.keep.row({x.b, x.h, i, x.first}) + first;
    if (std::find(row, row + keys, !value) != row + keys) return false;
  }
  return true;
}
inline bool skip(const MaskArgs& t, const ScoreBlock& x) { return all_are(false, t, x); }
inline bool idle(const MaskArgs& t, const ScoreBlock& x) { return all_are(true, t, x); }
#endif
