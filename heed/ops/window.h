// Windows that slide over images: how many places they have, checked. Convolution and pooling share it.
#pragma once

#include <array>
#include <cstdint>

#include "heed/core/check.h"

namespace heed {

using Pair = std::array<int64_t, 2>;  // along Y, along X

// The number of places of a window along both axes of an image of `size`.
inline Pair window_places(const char* op, Pair size, Pair kernel, Pair stride, Pair padding, Pair dilation) {
  constexpr int64_t most = 1 << 20;  // nothing real is larger, and no product or sum of such sizes overflows
  Pair places{};
  for (size_t axis = 0; axis < 2; ++axis) {
    check(size[axis] >= 1, op, ": the image is ", size[0], " x ", size[1], ", expected 1 or more");
    check(kernel[axis] >= 1 && kernel[axis] <= most, op, ": the kernel is ", kernel[0], " x ", kernel[1], ", expected 1 to ", most);
    check(stride[axis] >= 1 && stride[axis] <= most, op, ": the stride is ", stride[0], " x ", stride[1], ", expected 1 to ", most);
    check(padding[axis] >= 0 && padding[axis] <= most, op, ": the padding is ", padding[0], " x ", padding[1], ", expected 0 to ", most);
    check(dilation[axis] >= 1 && dilation[axis] <= most, op, ": the dilation is ", dilation[0], " x ", dilation[1], ", expected 1 to ",
          most);
    const int64_t span = (kernel[axis] - 1) * dilation[axis] + 1, room = size[axis] + 2 * padding[axis];
    check(span <= room, op, ": the window spans ", span, " along ", axis == 0 ? "Y" : "X", ", the padded image ", room);
    places[axis] = (room - span) / stride[axis] + 1;
  }
  return places;
}

}  // namespace heed
