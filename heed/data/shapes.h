// Synthetic images of coloured shapes on a noisy background, so that everything can be tried without downloads.
#pragma once

#include "heed/core/api.h"
#include "heed/data/image_data.h"

namespace HEED_API heed {

// How many images, and their width and height in pixels.
struct ShapesOptions {
  int64_t count = 4000, side = 32;
  uint64_t seed = 1;
};
// Classes: circle, square, triangle, cross, ring, ... Position, size, rotation, colours and noise are random. Image i is a function of
// (seed, i).
ImageData synthetic_shapes(const ShapesOptions& options);

}  // namespace heed
