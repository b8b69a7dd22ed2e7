// Heat maps of weights, alone or over an image.
#pragma once

#include <span>

#include "heed/core/api.h"
#include "heed/io/drawing.h"

namespace HEED_API heed {

// One pixel per weight, scaled by the largest. weights: (rows, columns)
Image heat_map(std::span<const float> weights, int64_t rows, int64_t columns);
// The image blended with the heat map enlarged to its size. share: weight of the map
Image overlay_heat_map(Image image, std::span<const float> weights, int64_t rows, int64_t columns, double share = 0.6);

}  // namespace heed
