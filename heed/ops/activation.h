// Activations that a matrix product applies to its result, in registers or in cache.
#pragma once

#include <cstdint>

#include "heed/core/api.h"

namespace HEED_API heed {

// What linear() applies to its result.
enum class Activation : uint8_t { none, relu, silu, gelu, gelu_tanh, quick_gelu, tanh, sigmoid };

}  // namespace heed
