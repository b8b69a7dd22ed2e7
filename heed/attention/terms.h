// Score terms: what attention adds to or takes from a score before the softmax. Each is a struct for users and, in the
// second half of this file, its formula: `keep` for a mask, or `score` and `gradient`; `skip` says that a whole block of
// scores is masked, `idle` that the term changes nothing in it. To add a mask: the struct, its
// formula, its name in Term. Parameters are also checked in attention.cc and their gradients collected in kernels.cc.
#ifndef HEED_ATTENTION_TERMS_H_
#define HEED_ATTENTION_TERMS_H_

#include <variant>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

struct Causal {  // keep j <= i + offset: with a cache, offset is the number of keys before the first query
  int64_t offset = 0;
};

struct Window {  // keep i - before <= j <= i + after; the first `globals` tokens see and are seen by all
  int64_t before = 0, after = 0, globals = 0;
};

struct Chunks {  // keep (i + shift) / size == (j + shift) / size: windows that tile the sequence, plain or shifted
  int64_t size = 1, shift = 0;
};

struct Dilated {  // keep j - i divisible by step
  int64_t step = 1;
};

struct KeyLengths {  // keep j < lengths[b]
  Tensor lengths;    // (B) i64
};

struct Bias {     // + values[b, h, i, j]; -infinity masks
  Tensor values;  // f32, broadcast to (B, H, N, M); learned if it requires a gradient
};

struct RelativeBias {  // + table[h, clamp(j - i, -R, R) + R]
  Tensor table;        // (H, 2 R + 1), learned
};

struct Alibi {    // - slope_h |i - j|: Press et al. 2022
  Tensor slopes;  // (H)
};

struct Gaussian2d {   // - alpha_h |delta - center_h|^2, delta = place of query - place of key: Cordonnier et al. 2020
  Tensor alpha;       // (H), learned
  Tensor center;      // (H, 2) rows and columns, learned
  int64_t width = 1;  // of the grid: token t lies at row t / width, column t % width
};

using Term = std::variant<Causal, Window, Chunks, Dilated, KeyLengths, Bias, RelativeBias, Alibi, Gaussian2d>;

// Gradients of single numbers are summed in as many lanes as the widest register has, and joined at the end.
inline constexpr int64_t kSinkLanes = 16;

// A block of scores of one head of one item: queries [i0, i1), keys [j0, j1).
struct ScoreBlock {
  int64_t b, h, i0, i1, j0, j1;
};

// The parameters that a term may learn, each (H, ...) but Bias; other terms have none.
inline Tensors parameters_of(const Term& term) {
  if (const auto* t = std::get_if<Bias>(&term)) return {t->values};
  if (const auto* t = std::get_if<RelativeBias>(&term)) return {t->table};
  if (const auto* t = std::get_if<Alibi>(&term)) return {t->slopes};
  if (const auto* t = std::get_if<Gaussian2d>(&term)) return {t->alpha, t->center};
  return {};
}

}  // namespace heed
#endif

#if defined(HEED_TERM_FORMULAS) && (defined(HEED_ATTENTION_TERM_FORMULAS_H_) == defined(HWY_TARGET_TOGGLE))
#ifdef HEED_ATTENTION_TERM_FORMULAS_H_
#undef HEED_ATTENTION_TERM_FORMULAS_H_
#else
#define HEED_ATTENTION_TERM_FORMULAS_H_
#endif

#include "heed/core/lanes.h"
#include "heed/core/raw.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// The row of a score: item, head and query.
struct ScoreRow {
  int64_t b, h, i;
};

static HWY_INLINE Lanes keys_from(int64_t j) { return Lanes(hn::Iota(FloatTag(), static_cast<float>(j))); }
static HWY_INLINE Lanes floor(Lanes x) { return hn::Floor(x.v); }
static HWY_INLINE LaneMask operator&&(LaneMask a, LaneMask b) { return {hn::And(a.m, b.m)}; }
static HWY_INLINE LaneMask operator||(LaneMask a, LaneMask b) { return {hn::Or(a.m, b.m)}; }
static HWY_INLINE LaneMask operator!(LaneMask a) { return {hn::Not(a.m)}; }

// What terms without these do.
template <class T>
bool skip(const T&, const ScoreBlock&) {
  return false;
}
template <class T>
bool idle(const T&, const ScoreBlock&) {
  return false;
}
template <class T, class Load, class Store>
HWY_INLINE void gradient(const T&, float*, Lanes, ScoreRow, int64_t, const Load&, const Store&) {}

// A mask keeps or drops.
template <class T, class Load>
HWY_INLINE Lanes score(const T& term, Lanes s, ScoreRow row, int64_t j, const Load&) {
  return select(keep(term, row, keys_from(j)), s, -HUGE_VALF);
}

inline bool skip(const Causal& t, const ScoreBlock& x) { return x.j0 > x.i1 - 1 + t.offset; }
inline bool idle(const Causal& t, const ScoreBlock& x) { return x.j1 - 1 <= x.i0 + t.offset; }
HWY_INLINE LaneMask keep(const Causal& t, ScoreRow row, Lanes j) { return !(j > Lanes(static_cast<float>(row.i + t.offset))); }

inline bool skip(const Window& t, const ScoreBlock& x) {
  if (x.i0 < t.globals || x.j0 < t.globals) return false;
  return x.j0 > x.i1 - 1 + t.after || x.j1 - 1 < x.i0 - t.before;
}
inline bool idle(const Window& t, const ScoreBlock& x) { return x.j1 - 1 <= x.i0 + t.after && x.j0 >= x.i1 - 1 - t.before; }
HWY_INLINE LaneMask keep(const Window& t, ScoreRow row, Lanes j) {
  if (row.i < t.globals) return j == j;
  const LaneMask near = !(j > Lanes(static_cast<float>(row.i + t.after))) && !(j < Lanes(static_cast<float>(row.i - t.before)));
  return near || j < Lanes(static_cast<float>(t.globals));
}

inline bool skip(const Chunks& t, const ScoreBlock& x) {
  return (x.i0 + t.shift) / t.size > (x.j1 - 1 + t.shift) / t.size || (x.i1 - 1 + t.shift) / t.size < (x.j0 + t.shift) / t.size;
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
inline bool skip(const KeyLengths& t, const ScoreBlock& x) { return x.j0 >= key_count(t, x.b); }
inline bool idle(const KeyLengths& t, const ScoreBlock& x) { return x.j1 <= key_count(t, x.b); }
HWY_INLINE LaneMask keep(const KeyLengths& t, ScoreRow row, Lanes j) { return j < Lanes(static_cast<float>(key_count(t, row.b))); }

// The row of a broadcast (B, H, N, M) tensor, and whether it is one number for all keys.
HWY_INLINE const float* bias_row(const Tensor& x, ScoreRow row) {
  const auto step = [&](int axis) { return x.shape()[axis] == 1 ? 0 : x.strides()[axis]; };
  return raw<float>(x) + row.b * step(0) + row.h * step(1) + row.i * step(2);
}
template <class Load>
HWY_INLINE Lanes score(const Bias& t, Lanes s, ScoreRow row, int64_t j, const Load& load) {
  const float* from = bias_row(t.values, row);
  return s + (t.values.shape()[3] == 1 ? Lanes(*from) : load(from + j));
}
template <class Load, class Store>
HWY_INLINE void gradient(const Bias&, float* sink, Lanes ds, ScoreRow, int64_t j, const Load&, const Store& store) {
  store(sink + j, ds);  // the sink is this row of a (B, H, N, M) tensor: summed over what was broadcast afterwards
}

// Lanes of a clamped table are consecutive but for its ends.
template <class Load>
HWY_INLINE Lanes score(const RelativeBias& t, Lanes s, ScoreRow row, int64_t j, const Load& load) {
  const int64_t width = t.table.shape()[1], reach = width / 2, at = j - row.i + reach, lanes = lane_count();
  const float* table = raw<float>(t.table) + row.h * width;
  if (at >= 0 && at + lanes <= width) return s + load(table + at);
  HWY_ALIGN float values[kLanes];
  for (int64_t lane = 0; lane < lanes; ++lane) values[lane] = table[std::clamp<int64_t>(at + lane, 0, width - 1)];
  return s + hn::Load(FloatTag(), values);
}
template <class Load, class Store>
HWY_INLINE void gradient(const RelativeBias& t, float* sink, Lanes ds, ScoreRow row, int64_t j, const Load& load, const Store& store) {
  const int64_t width = t.table.shape()[1], reach = width / 2, at = j - row.i + reach, lanes = lane_count();
  if (at >= 0 && at + lanes <= width) return store(sink + at, load(sink + at) + ds);
  HWY_ALIGN float values[kLanes];
  hn::Store(ds.v, FloatTag(), values);  // lanes behind the last key are zero
  for (int64_t lane = 0; lane < lanes; ++lane) sink[std::clamp<int64_t>(at + lane, 0, width - 1)] += values[lane];
}

template <class Load>
HWY_INLINE Lanes score(const Alibi& t, Lanes s, ScoreRow row, int64_t j, const Load&) {
  return s - raw<float>(t.slopes)[row.h] * abs(keys_from(j) - Lanes(static_cast<float>(row.i)));
}
template <class Load, class Store>
HWY_INLINE void gradient(const Alibi&, float* sink, Lanes ds, ScoreRow row, int64_t j, const Load&, const Store&) {
  const Lanes distance = abs(keys_from(j) - Lanes(static_cast<float>(row.i)));
  (Lanes::load(sink) - ds * distance).store(sink);
}

// delta - center, by rows and columns of the grid.
struct Offset {
  Lanes down, along;
};
HWY_INLINE Offset offset_from_center(const Gaussian2d& t, ScoreRow row, int64_t j) {
  const Lanes width = static_cast<float>(t.width), key = keys_from(j), key_row = floor((key + 0.5f) / width);
  const float* center = raw<float>(t.center) + 2 * row.h;
  return {Lanes(static_cast<float>(row.i / t.width) - center[0]) - key_row,
          Lanes(static_cast<float>(row.i % t.width) - center[1]) - fma(-key_row, width, key)};
}
template <class Load>
HWY_INLINE Lanes score(const Gaussian2d& t, Lanes s, ScoreRow row, int64_t j, const Load&) {
  const Offset o = offset_from_center(t, row, j);
  return s - raw<float>(t.alpha)[row.h] * fma(o.down, o.down, o.along * o.along);
}
template <class Load, class Store>
HWY_INLINE void gradient(const Gaussian2d& t, float* sink, Lanes ds, ScoreRow row, int64_t j, const Load&, const Store&) {
  const Offset o = offset_from_center(t, row, j);
  const Lanes pull = ds * Lanes(2 * raw<float>(t.alpha)[row.h]);
  (Lanes::load(sink) - ds * fma(o.down, o.down, o.along * o.along)).store(sink);
  fma(pull, o.down, Lanes::load(sink + kSinkLanes)).store(sink + kSinkLanes);
  fma(pull, o.along, Lanes::load(sink + 2 * kSinkLanes)).store(sink + 2 * kSinkLanes);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();
#endif
