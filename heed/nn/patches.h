// Images as tokens (Dosovitskiy et al. 2021): a strided convolution, computed as a linear layer on patches; and positions of patches for
// images of other sizes.
#pragma once

#include "heed/attention/pooled_keys.h"
#include "heed/core/api.h"
#include "heed/nn/linear.h"

namespace HEED_API heed {

// Patches row by row, in the layout of convolution weights. x: (B, C, Y, X) -> (B, Y/P X/Q, C P Q)
Tensor unfold_patches(const Tensor& x, int64_t P, int64_t Q);
// The same with channels last: (B, Y/P X/P, P P C)
Tensor space_to_depth(const Tensor& x, int64_t P);

// The kernel of Keys (1981). bicubic: a = -3/4, borders are replicated. antialiased: a = -1/2, widened when a grid shrinks, cut off at
// borders. PyTorch's interpolate() computes these for mode="bicubic", without and with antialias.
enum class GridFilter { bicubic, antialiased };

// Interpolates a row of features for every cell of a grid, the centres of cells aligned. x: (from[0] from[1], D) -> (to[0] to[1], D)
Tensor interpolated_grid(const Tensor& x, const TokenGrid& from, const TokenGrid& to, GridFilter filter = GridFilter::bicubic);

// A vector of D features for every patch of P rows and Q columns.
struct PatchEmbedding {
  Tensor weight;                                    // (D, C, P, Q), as in checkpoints; undefined if packed
  Tensor bias;                                      // (D) or undefined
  Shape kernel = {};                                // of the weight
  std::shared_ptr<const PackedWeight> packed = {};  // replaces `weight` for inference; never int8
  ModuleName name = {};

  PatchEmbedding() = default;
  // With parameters "weight" and "bias" of the scope.
  PatchEmbedding(const Scope& scope, int64_t channels, int64_t P, int64_t D, bool with_bias = true)
      : PatchEmbedding(scope, channels, P, P, D, with_bias) {}
  PatchEmbedding(const Scope& scope, int64_t channels, int64_t P, int64_t Q, int64_t D, bool with_bias);
  // precision: of the product on GPUs; the CPU's is f32. x: (B, C, Y, X) -> (B, Y/P X/Q, D)
  Tensor operator()(const Tensor& x, DType precision = DType::f32) const;
};

}  // namespace heed
