// Image resizing, bit-identical to Pillow.
#pragma once

#include <cstdint>

#include "heed/core/api.h"
#include "heed/io/image.h"

namespace HEED_API heed {

enum class Resample { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };  // Pillow's numbers

// All filters but `nearest` antialias when shrinking.
Image resize(const Image& image, int64_t width, int64_t height, Resample filter = Resample::bilinear);

// The centre of an image, padded with black if the image is smaller.
Image center_crop(const Image& image, int64_t width, int64_t height);

}  // namespace heed
