// Pictures for tests, and their bytes one at a time.
#pragma once

#include "heed/core/random.h"
#include "heed/io/picture.h"

namespace heed::test {

inline Picture some_picture(int64_t width, int64_t height, uint64_t seed = 3) {
  Picture out{width, height};
  for (int64_t i = 0; i < width * height * 3; ++i)
    out.pixels.push_back(static_cast<uint8_t>(40 + philox({seed, 0}, static_cast<uint64_t>(i))[0] % 170));
  return out;
}

inline int at(const Picture& picture, int64_t x, int64_t y, int64_t colour, int outside = 0) {
  if (x < 0 || y < 0 || x >= picture.width || y >= picture.height) return outside;
  return picture.pixels[static_cast<size_t>((y * picture.width + x) * 3 + colour)];
}

}  // namespace heed::test
