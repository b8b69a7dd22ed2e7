// Elementwise functions of one tensor, formula and derivative side by side. To add one: a struct with f and df and its
// line in the list, both in this file, or in activation.h if matrix products apply it, and its definition in
// tests/ops/elementwise_test.cc. The function, its kernels for every
// instruction set and its gradient follow from them. V is Lanes in CPU kernels, float in CUDA kernels.
#ifndef HEED_OPS_ELEMENTWISE_H_
#define HEED_OPS_ELEMENTWISE_H_

#include "heed/core/api.h"
#include "heed/core/autograd.h"
#include "heed/core/kernel.h"
#include "heed/ops/activation.h"

//  X(formula, function)
#define HEED_ELEMENTWISE(X) \
  X(Exp, exp)               \
  X(Log, log)               \
  X(Sqrt, sqrt)             \
  X(Softplus, softplus)     \
  HEED_ACTIVATIONS(X)

namespace HEED_API heed {

#define HEED_DECLARE(Formula, function) Tensor function(const Tensor& x);
// The function of every element, with its gradient. x: any shape -> the same shape
HEED_ELEMENTWISE(HEED_DECLARE)
#undef HEED_DECLARE

// Names a function in the arguments of kernels.
enum class Elementwise : uint8_t {
#define HEED_ENUMERATE(Formula, function) function,
  HEED_ELEMENTWISE(HEED_ENUMERATE)
#undef HEED_ENUMERATE
};

struct ElementwiseForward {  // y = f(x)
  Elementwise op;
  const void* x;
  void* y;
  int64_t count;
  DType dtype;
};
HEED_KERNEL(elementwise_forward, ElementwiseForward);

struct ElementwiseBackward {  // dx = g f'(x)
  Elementwise op;
  const void *x, *g;
  void* dx;
  int64_t count;
  DType dtype;
};
HEED_KERNEL(elementwise_backward, ElementwiseBackward);

}  // namespace heed
#endif

// The formulas need the arithmetic of V: a file that defines HEED_FORMULAS includes them in its own namespace.
#ifdef HEED_FORMULAS
// clang-format off
struct Exp {
  template <class V> HEED_INLINE static V f(V x) { return exp(x); }
  template <class V> HEED_INLINE static V df(V x) { return exp(x); }
};
struct Log {
  template <class V> HEED_INLINE static V f(V x) { return log(x); }
  template <class V> HEED_INLINE static V df(V x) { return 1 / x; }
};
struct Sqrt {
  template <class V> HEED_INLINE static V f(V x) { return sqrt(x); }
  template <class V> HEED_INLINE static V df(V x) { return 0.5f / sqrt(x); }
};
struct Tanh {
  template <class V> HEED_INLINE static V f(V x) { return tanh(x); }
  template <class V> HEED_INLINE static V df(V x) { const V y = tanh(x); return 1 - y * y; }
};
struct Sigmoid {
  template <class V> HEED_INLINE static V f(V x) { return sigmoid(x); }
  template <class V> HEED_INLINE static V df(V x) { const V y = sigmoid(x); return y * (1 - y); }
};
struct Softplus {  // log(1 + e^x) = max(x, 0) + log(1 + u) with u = e^-|x|; the quotient corrects the rounding of 1 + u
  template <class V> HEED_INLINE static V f(V x) {
    const V u = exp(-abs(x)), w = 1 + u;
    return max(x, V(0)) + select(w > V(1), log(w) * u / (w - 1), u);
  }
  template <class V> HEED_INLINE static V df(V x) { return sigmoid(x); }
};
struct Relu {
  template <class V> HEED_INLINE static V f(V x) { return select(x < V(0), V(0), x); }  // NaN stays NaN
  template <class V> HEED_INLINE static V df(V x) { return select(x > V(0), V(1), V(0)); }
};
struct Silu {  // x sigmoid(x)
  template <class V> HEED_INLINE static V f(V x) { return x * sigmoid(x); }
  template <class V> HEED_INLINE static V df(V x) { const V y = sigmoid(x); return y * (1 + x * (1 - y)); }
};
struct Gelu {  // x Phi(x) = max(x, 0) - a Phi(-a) with a = |x|: Hendrycks and Gimpel 2016. Beyond 13 the tail is zero.
  template <class V> HEED_INLINE static V distance(V x) { return min(V(13), abs(x)); }
  template <class V> HEED_INLINE static V f(V x) { const V a = distance(x); return max(V(0), x) - a * normal(a).tail; }
  template <class V> HEED_INLINE static V df(V x) {
    const V a = distance(x);
    const auto n = normal(a);
    const V below = n.tail - a * n.density;
    return select(x < V(0), below, 1 - below);
  }
};
struct GeluTanh {  // x/2 (1 + tanh(s)), s = sqrt(2/pi) (x + 0.044715 x^3), and (1 + tanh(s))/2 = sigmoid(2 s)
  template <class V> HEED_INLINE static V twice_s(V x) { return x * (V(1.59576912) + V(0.0713548163) * x * x); }
  template <class V> HEED_INLINE static V f(V x) { return x * sigmoid(twice_s(x)); }
  template <class V> HEED_INLINE static V df(V x) {
    const V y = sigmoid(twice_s(x));
    return y + x * y * (1 - y) * (V(1.59576912) + V(0.2140644489) * x * x);
  }
};
struct QuickGelu {  // x sigmoid(1.702 x): Hendrycks and Gimpel 2016
  template <class V> HEED_INLINE static V f(V x) { return x * sigmoid(1.702f * x); }
  template <class V> HEED_INLINE static V df(V x) { const V y = sigmoid(1.702f * x); return y * (1 + 1.702f * x * (1 - y)); }
};
struct ClippedGelu {  // at most 10
  template <class V> HEED_INLINE static V f(V x) { const V y = Gelu::f(x); return select(y > V(10), V(10), y); }
  template <class V> HEED_INLINE static V df(V x) { return select(x > V(10), V(0), Gelu::df(x)); }
};
struct ReluSquared {  // So et al. 2021
  template <class V> HEED_INLINE static V f(V x) { const V y = Relu::f(x); return y * y; }
  template <class V> HEED_INLINE static V df(V x) { return 2 * Relu::f(x); }
};
struct Relu6 {
  template <class V> HEED_INLINE static V f(V x) { return select(x > V(6), V(6), Relu::f(x)); }
  template <class V> HEED_INLINE static V df(V x) { return select(x > V(0), select(x < V(6), V(1), V(0)), V(0)); }
};
struct LeakyRelu {
  template <class V> HEED_INLINE static V f(V x) { return select(x < V(0), 0.01f * x, x); }
  template <class V> HEED_INLINE static V df(V x) { return select(x > V(0), V(1), V(0.01f)); }
};
struct Hardswish {  // x min(max(x + 3, 0), 6) / 6: Howard et al. 2019
  template <class V> HEED_INLINE static V f(V x) { return x * Relu6::f(x + 3) * (1.0f / 6); }
  template <class V> HEED_INLINE static V df(V x) {
    return select(x < V(-3), V(0), select(x > V(3), V(1), x * (1.0f / 3) + 0.5f));
  }
};
struct Mish {  // x t with t = tanh(log(1 + e^x)): Misra 2019. With v = e^-|x|: t = (1 + 2v) / (1 + 2v + 2v^2), or (v^2 + 2v) / (v^2 + 2v + 2)
  template <class V> HEED_INLINE static V f(V x) {
    const V v = exp(-abs(x)), n = v * (v + 2), m = 1 + 2 * v;
    return x * select(x < V(0), n / (n + 2), m / (m + 2 * v * v));
  }
  template <class V> HEED_INLINE static V df(V x) {  // t + x (1 - t^2) sigmoid(x)
    const V v = exp(-abs(x)), n = v * (v + 2), m = 1 + 2 * v, d = select(x < V(0), n + 2, m + 2 * v * v), r = 2 * (1 + v) / d;
    const V t = select(x < V(0), n, m) / d, rest = select(x < V(0), r * r, r * r * v * v);
    return t + x * rest * sigmoid(x);
  }
};
struct SqrtSoftplus {
  template <class V> HEED_INLINE static V f(V x) { return sqrt(Softplus::f(x)); }
  template <class V> HEED_INLINE static V df(V x) { return 0.5f * sigmoid(x) / sqrt(Softplus::f(x)); }
};
// clang-format on
#endif
