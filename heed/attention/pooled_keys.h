// Fewer keys: tokens on a grid are joined r x r at a time before attention sees them, which then costs N M / r^2.
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

// The mean of every r x r square; of the tokens on the grid where a square extends beyond it.
// x: (B, G, M, D), M = rows * columns -> (B, G, ceil(rows / r) * ceil(columns / r), D). For keys and for values alike.
Tensor pooled_keys(const Tensor& x, const TokenGrid& grid, int64_t reduction);

// The same by a learned convolution with stride r, beyond the grid are zeros. weight: (O, D, r, r), bias: (O) or undefined -> (..., O)
Tensor pooled_keys(const Tensor& x, const TokenGrid& grid, const Tensor& weight, const Tensor& bias = {});

}  // namespace heed
