// Pictures of other sizes, with the numbers that Pillow gives, bit for bit.
#pragma once

#include <cstdint>

#include "heed/io/picture.h"

namespace heed {

enum class Resample { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };  // Pillow's numbers

// All but `nearest` look at every pixel that falls together with others when a picture shrinks: no stripes appear.
Picture resize(const Picture& picture, int64_t width, int64_t height, Resample filter = Resample::bilinear);

// The middle of a picture; black around it where the picture is smaller.
Picture center_crop(const Picture& picture, int64_t width, int64_t height);

}  // namespace heed
