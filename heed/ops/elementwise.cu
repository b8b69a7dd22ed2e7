// Expands the list of elementwise.h into CUDA kernels.
#include "heed/cuda/map.cuh"
#include "heed/ops/formulas.cuh"

namespace heed::cuda {
namespace {

template <class Formula>
struct Value {
  __device__ float operator()(float x) const { return Formula::f(x); }
};
template <class Formula>
struct Gradient {
  __device__ float operator()(float x, float g) const { return g * Formula::df(x); }
};

// Calls visit with the formula of an op.
template <class Visit>
void with_op(Elementwise op, const Visit& visit) {
  switch (op) {
#define HEED_CASE(Formula, function) \
  case Elementwise::function: return visit(formulas::Formula());
    HEED_ELEMENTWISE(HEED_CASE)
#undef HEED_CASE
  }
}

}  // namespace

void elementwise_forward(const ElementwiseForward& a) {
  with_op(a.op, [&]<class Formula>(Formula) {
    with_storage(a.dtype, [&]<class T>(T) { map_elements<T>(Value<Formula>(), a.x, a.y, a.count); });
  });
}

void elementwise_backward(const ElementwiseBackward& a) {
  with_op(a.op, [&]<class Formula>(Formula) {
    with_storage(a.dtype, [&]<class T>(T) { map_elements<T>(Gradient<Formula>(), a.x, a.g, a.dx, a.count); });
  });
}

}  // namespace heed::cuda
