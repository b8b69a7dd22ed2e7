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
#define HEED_VISIT(Formula, function) \
  case Activation::function: return visit(Formula());
      HEED_ACTIVATIONS(HEED_VISIT)
#undef HEED_VISIT
  }
}
