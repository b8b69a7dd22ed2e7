// Windows that tile the sequence, plain or shifted (Liu et al., Swin, 2021, in one dimension).
#ifndef HEED_ATTENTION_TERMS_CHUNKS_H_
#define HEED_ATTENTION_TERMS_CHUNKS_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

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
  static TermInfo info() {
    const auto every_second_layer = [](const TermPlace& place, const TermValues& v) {
      return v.at("shifted") != 0 && place.layer % 2 == 1 ? std::floor(v.at("size") / 2) : 0;
    };
    return {.name = "chunks",
            .aliases = {"chunk"},
            .summary = "keeps the keys of the same chunk: (i + shift) / size = (j + shift) / size, rounded down",
            .source = "shifted: Liu et al. 2021",
            .use = TermUse::pattern,
            .masks = true,
            .settings = {{"size", "tokens of a chunk", 1, 1},
                         {"shifted", "shift by half a chunk in every second layer", 0, 0, TermSetting::Type::flag},
                         {"shift", "tokens by which chunks are shifted, the same in all layers", every_second_layer}}};
  }
  static Chunks make(const TermInput& in) { return {in.whole("size"), in.whole("shift")}; }
  VisibleKeys visible(int64_t i, int64_t) const {
    const int64_t first = (i + shift) / size * size - shift;
    return {{{first, first + size}}};
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
