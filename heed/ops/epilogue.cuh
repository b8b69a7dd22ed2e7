// The last step of a matrix product in CUDA: bias, activation, rounding to the type of the result. In registers where a kernel of heed's
// own made the sums, or over sums in memory. epilogue.h is the CPU's.
#pragma once

#include "heed/cuda/element.cuh"
#include "heed/ops/formulas.cuh"
#include "heed/ops/gemm.h"

namespace heed::cuda {

__device__ inline float activate(Activation activation, float x) {
  float y = x;
  formulas::with_formula(activation, [&](auto formula) { y = decltype(formula)::f(x); });
  return y;
}

// z = sum + bias; y = activation(z). The activation sees z as it is stored, so that backward can recompute y from it bit for bit.
struct Finish {
  const float* bias;        // (columns) or null
  const Bf16* narrow_bias;  // the same, where bias is null
  void *z, *y;              // z may be null
  Activation activation;
  bool add;     // y += sum
  bool narrow;  // z and y are bf16, not f32

  explicit Finish(const Gemm& g)
      : bias(g.bias),
        narrow_bias(g.bias ? nullptr : g.narrow_bias),
        z(g.z),
        y(g.c.data),
        activation(g.activation),
        add(g.add),
        narrow(g.c.dtype == DType::bf16) {}

  __device__ void operator()(int64_t at, int64_t column, float sum) const {
    if (add) sum += narrow ? load(static_cast<const Bf16*>(y) + at) : load(static_cast<const float*>(y) + at);
    if (bias) sum += bias[column];
    if (narrow_bias) sum += load(narrow_bias + column);
    if (z) {
      put(z, at, sum);
      if (narrow) sum = rounded_to(sum, Bf16());
    }
    put(y, at, activate(activation, sum));
  }
  __device__ void put(void* to, int64_t at, float x) const {
    if (narrow) {
      store(static_cast<Bf16*>(to) + at, x);
    } else {
      store(static_cast<float*>(to) + at, x);
    }
  }
};

// The same for sums in memory, which are stored like y, in its type; null: they are 0. Of every item of a product.
void finish_sums(const Gemm& g, const void* sums, const float* bias, void* z, void* y);

}  // namespace heed::cuda
