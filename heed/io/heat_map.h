// Weights as colours, and over the picture that they are of.
#pragma once

#include <span>

#include "heed/io/drawing.h"

namespace heed {

// Weights as colours, a pixel each; the brightest is the largest. weights: (rows, columns)
Picture heat_map(std::span<const float> weights, int64_t rows, int64_t columns);
// A picture behind such a map that is stretched over it. share: of the map
Picture heat_over(Picture picture, std::span<const float> weights, int64_t rows, int64_t columns, double share = 0.6);

}  // namespace heed
