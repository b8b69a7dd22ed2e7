// The list of activations: elementwise functions that a matrix product also applies to its result, in registers or in cache. Names are
// those of config.json (nn/feed_forward.h has others that are read). To add one: its line here, its formula in elementwise.h, its
// definition in tests/ops/elementwise_test.cc.
#pragma once

#include <cstdint>

#include "heed/core/api.h"

//  X(formula, function)
#define HEED_ACTIVATIONS(X) \
  X(Relu, relu)             \
  X(Silu, silu)             \
  X(Gelu, gelu)             \
  X(GeluTanh, gelu_tanh)    \
  X(Tanh, tanh)             \
  X(Sigmoid, sigmoid)       \
  X(QuickGelu, quick_gelu)  \
  X(ClippedGelu, gelu_10)   \
  X(ReluSquared, relu2)     \
  X(Relu6, relu6)           \
  X(LeakyRelu, leaky_relu)  \
  X(Hardswish, hardswish)   \
  X(Mish, mish)             \
  X(SqrtSoftplus, sqrtsoftplus)

namespace HEED_API heed {

// What linear() applies to its result.
enum class Activation : uint8_t {
  none,
#define HEED_ENUMERATE(Formula, function) function,
  HEED_ACTIVATIONS(HEED_ENUMERATE)
#undef HEED_ENUMERATE
};

}  // namespace heed
