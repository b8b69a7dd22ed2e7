#include "heed/data/image_ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heed {
namespace {

Warp warp_of(ImageOp op, double amount, int64_t width, int64_t height) {
  switch (op) {
    case ImageOp::rotate: {
      const double angle = amount * std::numbers::pi / 180, c = std::cos(angle), s = std::sin(angle);
      return {.xx = c, .xy = -s, .yx = s, .yy = c};
    }
    case ImageOp::shear_x: return {.xy = -amount};
    case ImageOp::shear_y: return {.yx = -amount};
    case ImageOp::translate_x: return {.x = -amount * static_cast<double>(width)};
    case ImageOp::translate_y: return {.y = -amount * static_cast<double>(height)};
    default: return {};
  }
}

}  // namespace

PixelStep pixel_step(ImageOp op, float amount, int64_t width, int64_t height) {
  check(static_cast<int>(op) >= 0 && static_cast<int>(op) < kImageOps, "pixel_step: found op ", static_cast<int>(op),
        ", expected one below ", kImageOps);
  check(op != ImageOp::posterize || (amount >= 1 && amount < 9), "posterize: found ", amount, " bits, expected 1 to 8");
  return {.op = op, .amount = amount, .warp = warp_of(op, static_cast<double>(amount), width, height)};
}

Image apply_step(const Image& image, const PixelStep& step) {
  check(image.width > 0 && image.height > 0 && std::ssize(image.pixels) == image.width * image.height * 3, "apply_step: found ",
        image.pixels.size(), " bytes, expected 3 for each of ", image.width, " x ", image.height, " pixels");
  Image out{image.width, image.height};
  out.pixels.resize(image.pixels.size());
  StepTables shared;
  run_step(OneThread(), step, image.pixels.data(), out.pixels.data(), static_cast<int>(image.width), static_cast<int>(image.height),
           shared);
  return out;
}

void flip_horizontal(Image& image) {
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* left = image.pixels.data() + y * image.width * 3;
    uint8_t* right = left + (image.width - 1) * 3;
    for (; left < right; left += 3, right -= 3)
      for (int colour = 0; colour < 3; ++colour) std::swap(left[colour], right[colour]);
  }
}

Image cropped(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height) {
  check(width > 0 && height > 0, "cropped: found a size of ", width, " x ", height, " pixels, expected at least 1 x 1");
  Image out{width, height};
  out.pixels.resize(static_cast<size_t>(3 * width * height));
  const int64_t x = std::max<int64_t>(-left, 0), count = std::min(width, image.width - left) - x;
  if (count <= 0) return out;
  for (int64_t y = std::max<int64_t>(-top, 0); y < std::min(height, image.height - top); ++y)
    std::copy_n(image.pixels.data() + ((top + y) * image.width + left + x) * 3, 3 * count, out.pixels.data() + (y * width + x) * 3);
  return out;
}

}  // namespace heed
