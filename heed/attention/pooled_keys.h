// Fewer keys: keys and values on a grid are pooled in squares of r x r before attention, whose cost becomes N M / r^2.
// Spatial reduction by Wang et al., Pyramid Vision Transformer, 2021 (a strided convolution) and its version 2, 2022 (a mean).
#pragma once

#include <array>

#include "heed/core/api.h"
#include "heed/core/autograd.h"

namespace HEED_API heed {

namespace op {
inline constexpr OpName pooled_keys{"pooled_keys"};
}

using TokenGrid = std::array<int64_t, 2>;  // rows and columns; token t is at row t / columns, column t % columns

// The mean of every r x r square; at the border, over the tokens that exist.
// x: (B, G, M, D), M = rows * columns -> (B, G, ceil(rows / r) * ceil(columns / r), D). For keys and for values.
Tensor pooled_keys(const Tensor& x, const TokenGrid& grid, int64_t reduction);

// The same with a learned convolution with stride r and zero padding. weight: (O, D, r, r), bias: (O) or undefined -> (..., O)
Tensor pooled_keys(const Tensor& x, const TokenGrid& grid, const Tensor& weight, const Tensor& bias = {});

}  // namespace heed
