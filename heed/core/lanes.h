// Lanes: as many floats as a vector register holds, with operators, so that a formula is written once for lanes, for
// float and for double. Included inside Highway's per-target section (see any kernel file): compiled once per
// instruction set. The polynomials were fitted for heed by weighted least squares towards the smallest largest error.
#if defined(HEED_CORE_LANES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_CORE_LANES_H_
#undef HEED_CORE_LANES_H_
#else
#define HEED_CORE_LANES_H_
#endif

#include <cmath>
#include <cstdint>

#include "heed/core/dtype.h"
#include "heed/core/normal_tail.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

// After the parameters of a lambda that works on lanes: it must be inlined into its loop, or its lanes go through memory.
#ifndef HEED_LANES
#define HEED_LANES HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::ScalableTag<int32_t>;
using HalfTag = hn::Rebind<uint16_t, FloatTag>;  // the bits of as many bf16 numbers

struct Lanes {
  hn::Vec<FloatTag> v;

  Lanes() = default;
  HWY_INLINE Lanes(hn::Vec<FloatTag> vector) : v(vector) {}
  HWY_INLINE Lanes(float x) : v(hn::Set(FloatTag(), x)) {}
  HWY_INLINE Lanes(double x) : Lanes(static_cast<float>(x)) {}
  HWY_INLINE Lanes(int x) : Lanes(static_cast<float>(x)) {}

  static HWY_INLINE Lanes load(const float* from) { return hn::LoadU(FloatTag(), from); }
  HWY_INLINE void store(float* to) const { hn::StoreU(v, FloatTag(), to); }

  // bf16 in memory is the upper half of an f32: widened when loaded, rounded to nearest even when stored; NaN stays NaN.
  static HWY_INLINE Lanes load(const Bf16* from) { return widened(hn::LoadU(HalfTag(), &from->bits)); }
  HWY_INLINE void store(Bf16* to) const { hn::StoreU(rounded(), HalfTag(), &to->bits); }

  static HWY_INLINE Lanes widened(hn::Vec<HalfTag> half) {
    const hn::RebindToUnsigned<FloatTag> words;
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(words, half)));
  }
  HWY_INLINE hn::Vec<HalfTag> rounded() const {
    const hn::RebindToUnsigned<FloatTag> words;
    const auto bits = hn::BitCast(words, v), low = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
    const auto nearest = hn::ShiftRight<16>(hn::Add(bits, hn::Add(low, hn::Set(words, 0x7fff))));
    const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(words, 0x40));
    const auto half = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(v)), quiet, nearest);
    return hn::DemoteTo(HalfTag(), hn::BitCast(IntTag(), half));
  }
};

static HWY_INLINE Lanes repeated(const float* x) { return *x; }
static HWY_INLINE Lanes repeated(const Bf16* x) { return to_float(*x); }

struct LaneMask {
  hn::Mask<FloatTag> m;
};

inline constexpr int64_t kLanes = hn::MaxLanes(FloatTag());
static HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

static HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return hn::Add(a.v, b.v); }
static HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return hn::Sub(a.v, b.v); }
static HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return hn::Mul(a.v, b.v); }
static HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return hn::Div(a.v, b.v); }
static HWY_INLINE Lanes operator-(Lanes a) { return hn::Neg(a.v); }
static HWY_INLINE LaneMask operator<(Lanes a, Lanes b) { return {hn::Lt(a.v, b.v)}; }
static HWY_INLINE LaneMask operator>(Lanes a, Lanes b) { return {hn::Gt(a.v, b.v)}; }
static HWY_INLINE LaneMask operator==(Lanes a, Lanes b) { return {hn::Eq(a.v, b.v)}; }

static HWY_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) { return hn::MulAdd(a.v, b.v, c.v); }  // a b + c
static HWY_INLINE Lanes abs(Lanes a) { return hn::Abs(a.v); }
static HWY_INLINE Lanes sqrt(Lanes a) { return hn::Sqrt(a.v); }
static HWY_INLINE Lanes select(LaneMask condition, Lanes yes, Lanes no) { return hn::IfThenElse(condition.m, yes.v, no.v); }

// If one is NaN, the second operand, as x86 does; Highway's portable versions differ.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
static HWY_INLINE Lanes max(Lanes a, Lanes b) { return select(a > b, a, b); }
static HWY_INLINE Lanes min(Lanes a, Lanes b) { return select(a < b, a, b); }
#else
static HWY_INLINE Lanes max(Lanes a, Lanes b) { return hn::Max(a.v, b.v); }
static HWY_INLINE Lanes min(Lanes a, Lanes b) { return hn::Min(a.v, b.v); }
#endif

static HWY_INLINE Lanes log(Lanes a) {  // the library's is for positive finite numbers
  const Lanes edge = select(a == Lanes(0), -HUGE_VALF, select(a < Lanes(0), NAN, a));
  return select(a > Lanes(0), select(a < HUGE_VALF, Lanes(hn::Log(FloatTag(), a.v)), a), edge);
}

static HWY_INLINE float sum(Lanes a) { return hn::GetLane(hn::SumOfLanes(FloatTag(), a.v)); }
static HWY_INLINE float largest(Lanes a) {
#if HWY_TARGET == HWY_EMU128  // the library's is never below the lowest finite number
  float top = hn::GetLane(a.v);
  for (size_t i = 1; i < kLanes; ++i) top = hn::ExtractLane(a.v, i) > top ? hn::ExtractLane(a.v, i) : top;
  return top;
#else
  return hn::GetLane(hn::MaxOfLanes(FloatTag(), a.v));
#endif
}

// The first `count` lanes of memory, the others zero; and back. Never touches memory after them.
static HWY_INLINE Lanes load_some(const float* from, int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(FloatTag(), static_cast<size_t>(count)), FloatTag(), from);
#else
  HWY_ALIGN float buffer[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) buffer[i] = from[i];
  return hn::Load(FloatTag(), buffer);
#endif
}
static HWY_INLINE void store_some(Lanes a, float* to, int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(a.v, hn::FirstN(FloatTag(), static_cast<size_t>(count)), FloatTag(), to);
#else
  HWY_ALIGN float buffer[kLanes];
  hn::Store(a.v, FloatTag(), buffer);
  for (int64_t i = 0; i < count; ++i) to[i] = buffer[i];
#endif
}

static HWY_INLINE Lanes load_some(const Bf16* from, int64_t count) {
  HWY_ALIGN uint16_t buffer[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) buffer[i] = from[i].bits;
  return Lanes::widened(hn::Load(HalfTag(), buffer));
}
static HWY_INLINE void store_some(Lanes a, Bf16* to, int64_t count) {
  HWY_ALIGN uint16_t buffer[kLanes];
  hn::Store(a.rounded(), HalfTag(), buffer);
  for (int64_t i = 0; i < count; ++i) to[i].bits = buffer[i];
}

// Non-temporal stores; bf16, half as many bytes, is stored normally.
static HWY_INLINE void stream(Lanes a, float* to) { hn::Stream(a.v, FloatTag(), to); }
static HWY_INLINE void stream(Lanes a, Bf16* to) { a.store(to); }

// Results larger than the caches use non-temporal stores: they would not stay in the cache, and normal stores read the memory first.
inline constexpr int64_t kStreamFrom = int64_t{4} << 20;  // elements

// Iterates over [0, count) one register at a time: body(offset, load, store) where load(p) and store(p, x) handle the tail.
template <class Body>
static HWY_INLINE void for_lanes(int64_t count, const Body& body) {
  const int64_t step = lane_count();
  int64_t i = 0;
  for (; i + step <= count; i += step)
    body(
        i, [](const auto* p) HEED_LANES { return Lanes::load(p); }, [](auto* p, Lanes x) HEED_LANES { x.store(p); });
  if (i < count) {
    const int64_t rest = count - i;
    body(
        i, [=](const auto* p) HEED_LANES { return load_some(p, rest); }, [=](auto* p, Lanes x) HEED_LANES { store_some(x, p, rest); });
  }
}

// x within [low, high]; NaN stays NaN.
static HWY_INLINE Lanes clamped(Lanes x, Lanes low, Lanes high) { return max(low, min(high, x)); }

// 1/x, exact to one or two last places, for finite normal x: the approximation of the CPU and one Newton step.
static HWY_INLINE Lanes reciprocal(Lanes x) {
  const Lanes guess = hn::ApproximateReciprocal(x.v);
  return guess * hn::NegMulAdd(x.v, guess.v, Lanes(2).v);
}

// for_lanes for whole tasks of a large result: with `streaming`, store bypasses the caches. The result is aligned to a register.
template <class Body>
static HWY_INLINE void for_lanes(bool streaming, int64_t count, const Body& body) {
  if (!streaming) return for_lanes(count, body);
  const int64_t step = lane_count(), whole = count / step * step;
  for (int64_t i = 0; i < whole; i += step)
    body(
        i, [](const auto* p) HEED_LANES { return Lanes::load(p); }, [](auto* p, Lanes x) HEED_LANES { stream(x, p); });
  if (whole < count) {
    const int64_t rest = count - whole;
    body(
        whole, [=](const auto* p) HEED_LANES { return load_some(p, rest); }, [=](auto* p, Lanes x) HEED_LANES { store_some(x, p, rest); });
  }
}

// e^x for x within [-87.33, 88.72]; beyond, the value at the nearer end (1.2e-38, 3.4e38). NaN stays NaN.
// e^x = 2^n e^r with |r| <= log(2)/2: adding 1.5 * 2^23 rounds to n and leaves it in the low bits, from where it moves
// straight into the exponent.
static HWY_INLINE Lanes exp_reduced(Lanes r) {  // |r| <= log(2)/2
  Lanes p = fma(r, 0.00139412021f, 0.00836319794f);
  p = fma(p, r, 0.0416663744f);
  p = fma(p, r, 0.166665769f);
  p = fma(p, r, 0.5f);
  return fma(fma(p, r, 1.0f), r, 1.0f);
}
// p 2^n, where n is in the low bits of `shifted`.
static HWY_INLINE Lanes times_power_of_two(Lanes p, Lanes shifted) {
  const IntTag ints;
  return hn::BitCast(FloatTag(), hn::Add(hn::BitCast(ints, p.v), hn::ShiftLeft<23>(hn::BitCast(ints, shifted.v))));
}
static HWY_INLINE Lanes exp_between(Lanes x) {
  const Lanes bounded = clamped(x, -87.33654f, 88.72283f);
  const Lanes magic = 12582912.0f, shifted = fma(bounded, 1.44269504f, magic), n = shifted - magic;
  const Lanes p = exp_reduced(fma(n, 2.12194440e-4f, fma(n, -0.693359375f, bounded)));
  return times_power_of_two(p, shifted);
}

// e^x for x <= 0, for softmax: zero if the result would be subnormal (inside tasks, where subnormals are zero).
// AVX-512 scales by any power of two in one instruction, which saves a third of the work.
static HWY_INLINE Lanes exp_below(Lanes x) {
#if HWY_TARGET <= HWY_AVX3
  const Lanes bounded = max(-120.0f, x), n = hn::Round((bounded * 1.44269504f).v);
  return hn::Vec<FloatTag>{_mm512_scalef_ps(exp_reduced(fma(n, -0.693147182f, bounded)).v.raw, n.v.raw)};
#else
  return hn::IfThenZeroElse((x < -87.33654f).m, exp_between(x).v);
#endif
}

static HWY_INLINE Lanes exp(Lanes x) { return select(x > 88.72283f, HUGE_VALF, exp_below(x)); }

static HWY_INLINE Lanes sigmoid(Lanes x) { return reciprocal(1 + exp_between(-x)); }

static HWY_INLINE Lanes tanh(Lanes x) {
  const Lanes z = x * x, a = abs(x);
  Lanes p = fma(z, -0.00609691554f, 0.0209973347f);
  p = fma(p, z, -0.0538509468f);
  p = fma(p, z, 0.1333277f);
  p = fma(p, z, -0.333333289f);
  const Lanes small = fma(p * z, x, x);
  const Lanes big = 1 - 2 * sigmoid(-2 * a);
  return select(a < 0.625f, small, hn::CopySignToAbs(big.v, x.v));
}

// The normal distribution at a distance 0 <= a <= 13 from its middle: Phi(-a) and the density share e^(-a^2/2), which stays
// a normal number so far out. Phi(-a) as normal_tail.h has it, relative error 1e-7 (1 + a^2/2): rounding
// a^2 makes as much. e^(-a^2/2) = 2^n 2^r with |r| <= 1/2, relative error 9e-8, by the means of exp_between.
struct Normal {
  Lanes tail, density;
};
static HWY_INLINE Normal normal(Lanes a) {
  const Lanes square = a * a, scale = normal_tail::minus_half_log2_e;
  const Lanes magic = 12582912.0f, shifted = fma(square, scale, magic), r = fma(square, scale, magic - shifted);
  Lanes power = fma(r, 0.00132647273f, 0.00967151299f);
  power = fma(power, r, 0.0555073358f);
  power = fma(power, r, 0.240222424f);
  power = fma(power, r, 0.693147004f);
  const Lanes e = times_power_of_two(fma(power, r, 1.0f), shifted);

  const Lanes u = reciprocal(fma(a, normal_tail::slope, 1.0f));
  Lanes p = fma(u, normal_tail::p6, normal_tail::p5);
  p = fma(p, u, normal_tail::p4);
  p = fma(p, u, normal_tail::p3);
  p = fma(p, u, normal_tail::p2);
  p = fma(p, u, normal_tail::p1);
  p = fma(p, u, normal_tail::p0);
  return {e * u * p, e * normal_tail::density};
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
