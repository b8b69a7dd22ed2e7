// Coloured shapes on noisy ground: pictures made by rule, for trying everything with nothing installed.
#pragma once

#include "heed/data/picture_data.h"

namespace heed {

struct ShapesOptions {
  int64_t count = 4000, side = 32;
  uint64_t seed = 1;
};
// Classes are shapes: circle, square, triangle, cross, ring, ... Place, size, turn, colours and noise are by chance, all of picture
// i a function of (seed, i).
PictureData made_shapes(const ShapesOptions& options);

}  // namespace heed
