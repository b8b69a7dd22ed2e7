// The arithmetic of float that the formulas of ops/elementwise.h use, accurate to a few units in the last place. See core/lanes.h for
// lanes.
#pragma once

#include "heed/core/normal_tail.h"

namespace heed::cuda::formulas {

__device__ inline float exp(float x) { return ::expf(x); }
__device__ inline float log(float x) { return ::logf(x); }
__device__ inline float sqrt(float x) { return ::sqrtf(x); }
__device__ inline float tanh(float x) { return ::tanhf(x); }
__device__ inline float abs(float x) { return ::fabsf(x); }
__device__ inline float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
__device__ inline float select(bool condition, float yes, float no) { return condition ? yes : no; }
// Where one is NaN, the second.
__device__ inline float max(float a, float b) { return a > b ? a : b; }
__device__ inline float min(float a, float b) { return a < b ? a : b; }

// One instruction each: 1/x to the last bit, 2^x to the last two. Subnormal results are zero.
__device__ inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float sigmoid(float x) { return reciprocal(1 + ::expf(-x)); }

// Phi(-a) and the density at 0 <= a <= 13. e^(-a^2/2) = 2^n 2^r with |r| <= 1/2: adding 1.5 * 2^23 rounds to n and leaves it in the low
// bits, from where it moves into the exponent. r has no rounding but its own.
struct Normal {
  float tail, density;
};
__device__ inline Normal normal(float a) {
  const float square = a * a, magic = 12582912.0f;
  const float shifted = fma(square, normal_tail::minus_half_log2_e, magic),
              r = fma(square, normal_tail::minus_half_log2_e, magic - shifted);
  const float e = __int_as_float(__float_as_int(exp2_approximate(r)) + (__float_as_int(shifted) << 23));
  const float u = reciprocal(fma(a, normal_tail::slope, 1.0f));
  float p = fma(u, normal_tail::p6, normal_tail::p5);
  p = fma(p, u, normal_tail::p4);
  p = fma(p, u, normal_tail::p3);
  p = fma(p, u, normal_tail::p2);
  p = fma(p, u, normal_tail::p1);
  p = fma(p, u, normal_tail::p0);
  return {e * u * p, e * normal_tail::density};
}

}  // namespace heed::cuda::formulas
