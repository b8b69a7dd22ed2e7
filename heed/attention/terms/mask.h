// Masks by the place of a key: causal, windows plain, shifted and dilated, and lengths. They have no parameters to learn.
#ifndef HEED_ATTENTION_TERMS_MASK_H_
#define HEED_ATTENTION_TERMS_MASK_H_

#include "heed/attention/term.h"

namespace heed {

struct Causal {  // keep j <= i + offset: with a cache, offset is the number of keys before the first query
  static constexpr const char* name = "Causal";
  int64_t offset = 0;
};

struct Window {  // keep i - before <= j <= i + after; the first `globals` tokens see and are seen by all
  static constexpr const char* name = "Window";
  int64_t before = 0, after = 0, globals = 0;
  void check_sizes(const AttentionSizes&) const {
    check(before >= 0 && after >= 0 && globals >= 0, "attention: Window{", before, ", ", after, ", ", globals, "}, expected 0 or more");
  }
};

struct Chunks {  // keep (i + shift) / size == (j + shift) / size: windows that tile the sequence, plain or shifted
  static constexpr const char* name = "Chunks";
  int64_t size = 1, shift = 0;
  void check_sizes(const AttentionSizes&) const {
    check(size >= 1 && shift >= 0, "attention: Chunks of ", size, " shifted by ", shift, ", expected 1 and 0 or more");
  }
};

struct Dilated {  // keep j - i divisible by step
  static constexpr const char* name = "Dilated";
  int64_t step = 1;
  void check_sizes(const AttentionSizes&) const { check(step >= 1, "attention: Dilated by ", step, ", expected 1 or more"); }
};

struct KeyLengths {  // keep j < lengths[b]
  static constexpr const char* name = "KeyLengths";
  Tensor lengths;  // (B) i64
  std::vector<TermTensor> tensors(const AttentionSizes& z) { return {{"lengths", lengths, {z.B}, Sums::none, DType::i64}}; }
};

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERMS_MASK_FORMULAS) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERMS_MASK_FORMULAS
#undef HEED_ATTENTION_TERMS_MASK_FORMULAS
#else
#define HEED_ATTENTION_TERMS_MASK_FORMULAS
#endif
#include "heed/attention/term_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

inline KeyRange reach(const Causal& t, const ScoreBlock& x) { return {x.j0, x.i1 + t.offset}; }
inline bool idle(const Causal& t, const ScoreBlock& x) { return x.j1 - 1 <= x.i0 + t.offset; }
HWY_INLINE LaneMask keep(const Causal& t, ScoreRow row, Lanes j) { return !(j > Lanes(static_cast<float>(row.i + t.offset))); }

inline KeyRange reach(const Window& t, const ScoreBlock& x) {
  if (x.i0 < t.globals) return {x.j0, x.j1};
  return {x.j0 < t.globals ? x.j0 : x.i0 - t.before, std::max(x.i1 + t.after, t.globals)};
}
inline bool idle(const Window& t, const ScoreBlock& x) { return x.j1 - 1 <= x.i0 + t.after && x.j0 >= x.i1 - 1 - t.before; }
HWY_INLINE LaneMask keep(const Window& t, ScoreRow row, Lanes j) {
  if (row.i < t.globals) return j == j;
  const LaneMask near = !(j > Lanes(static_cast<float>(row.i + t.after))) && !(j < Lanes(static_cast<float>(row.i - t.before)));
  return near || j < Lanes(static_cast<float>(t.globals));
}

inline KeyRange reach(const Chunks& t, const ScoreBlock& x) {
  return {(x.i0 + t.shift) / t.size * t.size - t.shift, ((x.i1 - 1 + t.shift) / t.size + 1) * t.size - t.shift};
}
HWY_INLINE LaneMask keep(const Chunks& t, ScoreRow row, Lanes j) {
  const int64_t first = (row.i + t.shift) / t.size * t.size - t.shift;
  return !(j < Lanes(static_cast<float>(first))) && j < Lanes(static_cast<float>(first + t.size));
}

HWY_INLINE LaneMask keep(const Dilated& t, ScoreRow row, Lanes j) {
  const Lanes step = static_cast<float>(t.step), apart = j - Lanes(static_cast<float>(row.i));
  return floor(apart / step + 0.5f) * step == apart;
}

inline int64_t key_count(const KeyLengths& t, int64_t b) { return raw<int64_t>(t.lengths)[b]; }
inline KeyRange reach(const KeyLengths& t, const ScoreBlock& x) { return {x.j0, key_count(t, x.b)}; }
inline bool idle(const KeyLengths& t, const ScoreBlock& x) { return x.j1 <= key_count(t, x.b); }
HWY_INLINE LaneMask keep(const KeyLengths& t, ScoreRow row, Lanes j) { return j < Lanes(static_cast<float>(key_count(t, row.b))); }

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
