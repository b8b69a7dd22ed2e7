// Images as tokens (Dosovitskiy et al. 2021): a strided convolution, computed as a linear layer on patches.
#pragma once

#include "heed/core/api.h"
#include "heed/nn/linear.h"

namespace HEED_API heed {

// Patches row by row, in the layout of convolution weights. x: (B, C, Y, X) -> (B, Y/P X/Q, C P Q)
Tensor unfold_patches(const Tensor& x, int64_t P, int64_t Q);
// The same with channels last: (B, Y/P X/P, P P C)
Tensor space_to_depth(const Tensor& x, int64_t P);

// A vector of D features for every patch of P rows and Q columns.
struct PatchEmbedding {
  Tensor weight;  // (D, C, P, Q), as in checkpoints
  Tensor bias;    // (D) or undefined
  ModuleName name = {};

  PatchEmbedding() = default;
  // With parameters "weight" and "bias" of the scope.
  PatchEmbedding(const Scope& scope, int64_t channels, int64_t P, int64_t D, bool with_bias = true)
      : PatchEmbedding(scope, channels, P, P, D, with_bias) {}
  PatchEmbedding(const Scope& scope, int64_t channels, int64_t P, int64_t Q, int64_t D, bool with_bias);
  Tensor operator()(const Tensor& x) const;  // x: (B, C, Y, X) -> (B, Y/P X/Q, D)
};

}  // namespace heed
