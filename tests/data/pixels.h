// Images for tests, and access to single bytes.
#pragma once

#include "heed/core/random.h"
#include "heed/io/image.h"

namespace heed::test {

inline Image some_image(int64_t width, int64_t height, uint64_t seed = 3) {
  Image out{width, height};
  for (int64_t i = 0; i < width * height * 3; ++i)
    out.pixels.push_back(static_cast<uint8_t>(40 + philox({seed, 0}, static_cast<uint64_t>(i))[0] % 170));
  return out;
}

inline int at(const Image& image, int64_t x, int64_t y, int64_t colour, int outside = 0) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return outside;
  return image.pixels[static_cast<size_t>((y * image.width + x) * 3 + colour)];
}

}  // namespace heed::test
