#include "heed/data/image_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace heed {
namespace {

using ColorTable = std::array<uint8_t, 256>;
using ColorTables = std::array<ColorTable, 3>;  // one per channel

// make(byte) -> byte
template <class Make>
ColorTable table_of(const Make& make) {
  ColorTable out{};
  for (int i = 0; i < 256; ++i) out[static_cast<size_t>(i)] = static_cast<uint8_t>(std::clamp(static_cast<int>(make(i)), 0, 255));
  return out;
}

void apply_table(Image& image, const ColorTables& tables) {
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    for (size_t colour = 0; colour < 3; ++colour) image.pixels[i + colour] = tables[colour][image.pixels[i + colour]];
}
void apply_table(Image& image, const ColorTable& table) {
  for (uint8_t& byte : image.pixels) byte = table[byte];
}

// Linear interpolation: factor 0 is `from`, 1 is `to`. Truncated, not rounded.
uint8_t blended(int from, int to, float factor) {
  return static_cast<uint8_t>(std::clamp(static_cast<float>(from) + factor * static_cast<float>(to - from), 0.0f, 255.0f));
}

// ITU-R 601 luma weights in 16-bit fixed point.
int grey_of(const uint8_t* pixel) { return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16; }

void change_contrast(Image& image, float factor) {
  int64_t sum = 0;
  const int64_t pixels = image.width * image.height;
  for (int64_t i = 0; i < pixels; ++i) sum += grey_of(image.pixels.data() + 3 * i);
  const auto mean = static_cast<int>((2 * sum + pixels) / (2 * pixels));  // rounded
  apply_table(image, table_of([&](int byte) { return blended(mean, byte, factor); }));
}

void change_saturation(Image& image, float factor) {
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* const pixel = &image.pixels[i];
    const int grey = grey_of(pixel);
    for (int colour = 0; colour < 3; ++colour) pixel[colour] = blended(grey, pixel[colour], factor);
  }
}

// Blends with the smoothed image: weight 5/13 for the pixel, 1/13 for each of its eight neighbours. The border is unchanged.
Image sharpened(const Image& image, float factor) {
  Image out = image;
  const int64_t row = image.width * 3;
  for (int64_t y = 1; y + 1 < image.height; ++y)
    for (int64_t x = 3; x + 3 < row; ++x) {
      const uint8_t* const at = image.pixels.data() + y * row + x;
      int sum = 4 * at[0];
      for (const int64_t line : {-row, int64_t{0}, row}) sum += at[line - 3] + at[line] + at[line + 3];
      const int smooth = (2 * sum + 13) / 26;  // rounded
      out.pixels[static_cast<size_t>(y * row + x)] = blended(smooth, at[0], factor);
    }
  return out;
}

using Histogram = std::array<int64_t, 256>;

// make(histogram of a channel) -> ColorTable
template <class Make>
void by_histograms(Image& image, const Make& make) {
  std::array<Histogram, 3> counts{};
  for (size_t i = 0; i < image.pixels.size(); ++i) ++counts[i % 3][image.pixels[i]];
  apply_table(image, {make(counts[0]), make(counts[1]), make(counts[2])});
}

ColorTable equalize_table(const Histogram& counts) {
  int64_t all = 0, last = 0;
  for (const int64_t count : counts) {
    all += count;
    if (count > 0) last = count;
  }
  const int64_t step = (all - last) / 255;
  if (step == 0) return table_of([](int byte) { return byte; });
  int64_t sum = step / 2;
  ColorTable out{};
  for (size_t i = 0; i < 256; ++i) {
    out[i] = static_cast<uint8_t>(std::min<int64_t>(sum / step, 255));
    sum += counts[i];
  }
  return out;
}

ColorTable autocontrast_table(const Histogram& counts) {
  const auto some = [](int64_t count) { return count > 0; };
  const int64_t low = std::find_if(counts.begin(), counts.end(), some) - counts.begin(),
                high = 255 - (std::find_if(counts.rbegin(), counts.rend(), some) - counts.rbegin());
  if (high <= low) return table_of([](int byte) { return byte; });
  const double scale = 255.0 / static_cast<double>(high - low), offset = static_cast<double>(-low) * scale;
  return table_of([&](int byte) { return std::clamp(byte * scale + offset, 0.0, 255.0); });
}

// Inverse map of an output pixel: source = matrix * (position relative to the centre) + offset.
struct Warp {
  double xx = 1, xy = 0, yx = 0, yy = 1, x = 0, y = 0;
};

// Bilinear interpolation in 1/256 steps; pixels outside are grey.
Image warped(const Image& image, const Warp& warp) {
  constexpr int grey = 128, one = 256;
  const int64_t width = image.width, height = image.height;
  Image out{width, height};
  out.pixels.resize(image.pixels.size());
  const double middle_x = static_cast<double>(width - 1) / 2, middle_y = static_cast<double>(height - 1) / 2;
  const uint8_t* const from = image.pixels.data();
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x, to += 3) {
      const double dx = static_cast<double>(x) - middle_x, dy = static_cast<double>(y) - middle_y;
      const auto at_x = static_cast<int64_t>(std::floor((warp.xx * dx + warp.xy * dy + warp.x + middle_x) * one + 0.5)),
                 at_y = static_cast<int64_t>(std::floor((warp.yx * dx + warp.yy * dy + warp.y + middle_y) * one + 0.5));
      const int64_t left = at_x >> 8, top = at_y >> 8;
      const int x_weight = static_cast<int>(at_x & 255), y_weight = static_cast<int>(at_y & 255);
      const std::array<int, 4> weights{(one - y_weight) * (one - x_weight), (one - y_weight) * x_weight, y_weight * (one - x_weight),
                                       y_weight * x_weight};
      std::array<int, 3> sums{one * one / 2, one * one / 2, one * one / 2};
      for (int corner = 0; corner < 4; ++corner) {
        const int64_t column = left + (corner & 1), row = top + (corner >> 1);
        const bool inside = column >= 0 && column < width && row >= 0 && row < height;
        const uint8_t* const pixel = inside ? from + 3 * (row * width + column) : nullptr;
        const int weight = weights[static_cast<size_t>(corner)];
        for (size_t colour = 0; colour < 3; ++colour) sums[colour] += weight * (inside ? pixel[colour] : grey);
      }
      for (size_t colour = 0; colour < 3; ++colour) to[colour] = static_cast<uint8_t>(sums[colour] >> 16);
    }
  return out;
}

Warp warp_of(const Image& image, ImageOp op, double amount) {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  switch (op) {
    case ImageOp::rotate: {
      const double angle = amount * std::numbers::pi / 180, c = std::cos(angle), s = std::sin(angle);
      return {.xx = c, .xy = -s, .yx = s, .yy = c};
    }
    case ImageOp::shear_x: return {.xy = -amount};
    case ImageOp::shear_y: return {.yx = -amount};
    case ImageOp::translate_x: return {.x = -amount * width};
    default: return {.y = -amount * height};
  }
}

}  // namespace

Image apply_op(const Image& image, ImageOp op, float amount) {
  check(image.width > 0 && image.height > 0 && std::ssize(image.pixels) == image.width * image.height * 3, "apply_op: found ",
        image.pixels.size(), " bytes, expected 3 for each of ", image.width, " x ", image.height, " pixels");
  Image out;
  switch (op) {
    case ImageOp::rotate:
    case ImageOp::shear_x:
    case ImageOp::shear_y:
    case ImageOp::translate_x:
    case ImageOp::translate_y: return warped(image, warp_of(image, op, static_cast<double>(amount)));
    case ImageOp::sharpness: return sharpened(image, amount);
    default: out = image;
  }
  switch (op) {
    case ImageOp::brightness: apply_table(out, table_of([&](int byte) { return blended(0, byte, amount); })); break;
    case ImageOp::contrast: change_contrast(out, amount); break;
    case ImageOp::saturation: change_saturation(out, amount); break;
    case ImageOp::posterize: {
      const auto bits = static_cast<int>(amount);
      check(bits >= 1 && bits <= 8, "posterize: found ", amount, " bits, expected 1 to 8");
      apply_table(out, table_of([&](int byte) { return byte & (0xff << (8 - bits)); }));
      break;
    }
    case ImageOp::solarize:
      apply_table(out, table_of([&](int byte) { return static_cast<float>(byte) < amount ? byte : 255 - byte; }));
      break;
    case ImageOp::equalize: by_histograms(out, equalize_table); break;
    case ImageOp::autocontrast: by_histograms(out, autocontrast_table); break;
    case ImageOp::invert: apply_table(out, table_of([](int byte) { return 255 - byte; })); break;
    default: fail("apply_op: found op ", static_cast<int>(op), ", expected one below ", kImageOps);
  }
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
