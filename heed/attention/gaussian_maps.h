// The two maps of position-only Gaussian attention on a grid: softmax over keys j of -alpha (i - j - center)^2, along rows and along
// columns.
#pragma once

#include <utility>

#include "heed/attention/gaussian_maps_kernels.h"
#include "heed/core/autograd.h"

namespace heed {

namespace op {
inline constexpr OpName gaussian_maps{"gaussian_maps"};
}

// alpha: (H), center: (H, 2) -> (H, Y, R) and (H, X, C)
std::pair<Tensor, Tensor> gaussian_maps(const Tensor& alpha, const Tensor& center, const GaussianMapSizes& sizes);

}  // namespace heed
