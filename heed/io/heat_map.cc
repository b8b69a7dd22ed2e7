#include "heed/io/heat_map.h"

#include <algorithm>

namespace heed {

Image heat_map(std::span<const float> weights, int64_t rows, int64_t columns) {
  check(std::ssize(weights) == rows * columns && rows * columns > 0, "heat map: ", weights.size(), " weights, expected ", rows, " x ",
        columns);
  const float max_weight = std::max(*std::max_element(weights.begin(), weights.end()), 1e-12f);
  Image out{.width = columns, .height = rows};
  for (const float weight : weights) {
    const Colour colour = heat(weight / max_weight);
    out.pixels.insert(out.pixels.end(), {colour.red, colour.green, colour.blue});
  }
  return out;
}

Image overlay_heat_map(Image image, std::span<const float> weights, int64_t rows, int64_t columns, double share) {
  const Image map = heat_map(weights, rows, columns);
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      const uint8_t* above = &map.pixels[static_cast<size_t>(3 * (y * rows / image.height * columns + x * columns / image.width))];
      uint8_t* pixel = &image.pixels[static_cast<size_t>(3 * (y * image.width + x))];
      const Colour colour = mixed({pixel[0], pixel[1], pixel[2]}, {above[0], above[1], above[2]}, share);
      pixel[0] = colour.red;
      pixel[1] = colour.green;
      pixel[2] = colour.blue;
    }
  return image;
}

}  // namespace heed
