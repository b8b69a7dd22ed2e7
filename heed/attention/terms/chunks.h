// Windows that tile the sequence, plain or shifted (Liu et al., Swin, 2021, in one dimension).
#ifndef HEED_ATTENTION_TERMS_CHUNKS_H_
#define HEED_ATTENTION_TERMS_CHUNKS_H_

#include "heed/attention/term.h"

namespace heed {

struct ChunksArgs {
  static constexpr bool is_mask = true;
  int64_t size, shift;
};
HEED_HOST_DEVICE inline KeyRange reach(const ChunksArgs& t, const ScoreBlock& x) {
  return {(x.i0 + t.shift) / t.size * t.size - t.shift, ((x.i1 - 1 + t.shift) / t.size + 1) * t.size - t.shift};
}

#ifndef __CUDACC__
struct Chunks {  // keep (i + shift) / size == (j + shift) / size
  static constexpr const char* name = "Chunks";
  int64_t size = 1, shift = 0;
  void check_sizes(const AttentionSizes&) const {
    check(size >= 1 && shift >= 0, "attention: Chunks of ", size, " shifted by ", shift, ", expected 1 and 0 or more");
  }
  TermValues settings() const { return {{"size", static_cast<double>(size)}, {"shift", static_cast<double>(shift)}}; }
  static TermInfo info() {
    return {.name = "chunks",
            .aliases = {"chunk"},
            .summary = "keeps the keys of the same chunk: (i + shift) / size = (j + shift) / size",
            .masks = true,
            .settings = {{"size", "tokens of a chunk", 1, 1}, {"shift", "tokens by which chunks are shifted", 0, 0}}};
  }
  ChunksArgs args() const { return {size, shift}; }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT auto keep(const ChunksArgs& t, const ScoreRow& row, Keys<V> keys) {
  const int64_t first = (row.i + t.shift) / t.size * t.size - t.shift;
  const V j = numbers(keys);
  return !(j < V(static_cast<float>(first))) && j < V(static_cast<float>(first + t.size));
}
#endif
