#include "heed/lab/images.h"

#include <algorithm>
#include <cmath>

#include "heed/data/shapes.h"
#include "heed/io/resize.h"

namespace heed::lab {
namespace {

// Shapes are generated with noise: drawn 16 times larger, it averages out.
Image four_shapes(int64_t side, uint64_t seed) {
  constexpr int64_t oversampling = 16, kinds[] = {7, 6, 1, 9};  // heart, star, ring, bolt
  const int64_t half = side / 2;
  const ImageData shapes = synthetic_shapes({.count = 10, .side = oversampling * half, .seed = seed});
  Image out{.width = side, .height = side, .pixels = std::vector<uint8_t>(static_cast<size_t>(3 * side * side))};
  for (int64_t part = 0; part < 4; ++part) {
    const Image one = resize(shapes.image(kinds[part]), half, half, Resample::box);
    for (int64_t y = 0; y < half; ++y)
      std::copy_n(one.pixels.begin() + 3 * y * half, 3 * half, out.pixels.begin() + 3 * ((part / 2 * half + y) * side + part % 2 * half));
  }
  return out;
}

}  // namespace

Image image_for(const std::string& file, int64_t side, uint64_t seed) {
  check(side >= 2 && side % 2 == 0, "image: found side ", side, ", expected an even number");
  if (file.empty()) return four_shapes(side, seed);
  const Image whole = read_image(file);
  const int64_t square = std::min(whole.width, whole.height);
  return resize(center_crop(whole, square, square), side, side, Resample::box);
}

Tensor colours_of(const Image& image) {
  const auto count = static_cast<size_t>(image.width * image.height);
  std::vector<float> values(3 * count);
  for (size_t i = 0; i < 3 * count; ++i) values[i % 3 * count + i / 3] = static_cast<float>(image.pixels[i]) / 255;
  return Tensor::from(values, {3, image.height, image.width}, kCpu);
}

Image image_of(const Tensor& colours) {
  check(colours.rank() == 3 && colours.size(0) == 3, "image: found shape ", colours.shape(), ", expected (3, height, width)");
  Image out{.width = colours.size(2), .height = colours.size(1)};
  const std::vector<float> values = colours.to_vector<float>();
  const size_t count = values.size() / 3;
  for (size_t i = 0; i < values.size(); ++i)
    out.pixels.push_back(static_cast<uint8_t>(std::lround(255 * std::clamp(values[i % 3 * count + i / 3], 0.0f, 1.0f))));
  return out;
}

}  // namespace heed::lab
