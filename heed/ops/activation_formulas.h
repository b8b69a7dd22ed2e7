// The formula of each activation. formulas.h and formulas.cuh include it in their namespaces, after the formulas of elementwise.h, with
// HEED_INLINE and HEED_VISITOR as the attributes of formulas and of functions that are called with one.
struct Identity {
  template <class V>
  HEED_INLINE static V f(V x) {
    return x;
  }
};

// Calls visit with the formula of an activation.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Visit>
HEED_VISITOR void with_formula(Activation activation, const Visit& visit) {
  switch (activation) {
    case Activation::none: return visit(Identity());
    case Activation::relu: return visit(Relu());
    case Activation::silu: return visit(Silu());
    case Activation::gelu: return visit(Gelu());
    case Activation::gelu_tanh: return visit(GeluTanh());
    case Activation::quick_gelu: return visit(QuickGelu());
    case Activation::tanh: return visit(Tanh());
    case Activation::sigmoid: return visit(Sigmoid());
  }
}
