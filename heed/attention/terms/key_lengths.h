// Lengths of padded sequences: an item has only its first keys.
#ifndef HEED_ATTENTION_TERMS_KEY_LENGTHS_H_
#define HEED_ATTENTION_TERMS_KEY_LENGTHS_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct KeyLengthsArgs {
  static constexpr bool is_mask = true, reads_mask = true;
  const int64_t* lengths;  // (B)
};
HEED_HOST_DEVICE inline KeyRange reach(const KeyLengthsArgs& t, const ScoreBlock& x) { return {x.j0, t.lengths[x.b]}; }
HEED_HOST_DEVICE inline bool idle(const KeyLengthsArgs& t, const ScoreBlock& x) { return x.j1 <= t.lengths[x.b]; }

#ifndef __CUDACC__
struct KeyLengths {  // keep j < lengths[b]
  static constexpr const char* name = "KeyLengths";
  Tensor lengths;  // (B) i64
  std::vector<TermTensor> tensors(const AttentionSizes& z) { return {{"lengths", lengths, {z.B}, Sums::none, DType::i64}}; }
  static TermInfo info() {
    return {.name = "lengths", .aliases = {"key_lengths"}, .summary = "keeps the first lengths[b] keys of item b", .masks = true};
  }
  KeyLengthsArgs args() const { return {raw<int64_t>(lengths)}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT auto keep(const KeyLengthsArgs& t, const ScoreRow& row, Keys<V> j) {
  return numbers(j) < V(static_cast<float>(t.lengths[row.b]));
}
#endif
