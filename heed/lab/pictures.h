// Pictures for experiments: a person's, or one made by rule; and as tensors of colours from 0 to 1.
#pragma once

#include <string>

#include "heed/core/tensor.h"
#include "heed/io/picture.h"

namespace heed::lab {

// side x side, even: the middle of the file's picture, or without a file four shapes on quiet grounds.
Picture picture_for(const std::string& file, int64_t side, uint64_t seed = 1);

Tensor colours_of(const Picture& picture);  // (3, height, width)
Picture picture_of(const Tensor& colours);  // colours: (3, height, width), held within 0 and 1

}  // namespace heed::lab
