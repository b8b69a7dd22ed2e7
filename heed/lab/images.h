// Test images for experiments, and their conversion to tensors with values in [0, 1].
#pragma once

#include <string>

#include "heed/core/tensor.h"
#include "heed/io/image.h"

namespace heed::lab {

// side x side, side even: the centre crop of the file, or without a file four synthetic shapes.
Image image_for(const std::string& file, int64_t side, uint64_t seed = 1);

Tensor colours_of(const Image& image);  // (3, height, width)
Image image_of(const Tensor& colours);  // clamped to [0, 1]

}  // namespace heed::lab
