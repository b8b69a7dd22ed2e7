// Tensors as nested lists of numbers, and back.
#pragma once

#include "heed/core/tensor.h"
#include "heed/io/json_reader.h"

namespace heed::serve {

Json short_number(float value);                         // the shortest decimal that reads as the same float; null if it is not finite
Json tensor_json(const Tensor& x, int first_axis = 0);  // without the axes before, which must have one element
// An error unless the lists have exactly this shape.
Tensor tensor_in(const JsonReader& json, const Shape& shape);

}  // namespace heed::serve
