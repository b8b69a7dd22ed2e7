#include "heed/data/picture_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace heed {
namespace {

using ColorTable = std::array<uint8_t, 256>;
using ColorTables = std::array<ColorTable, 3>;  // one for each colour

// make(byte) -> byte
template <class Make>
ColorTable table_of(const Make& make) {
  ColorTable out{};
  for (int i = 0; i < 256; ++i) out[static_cast<size_t>(i)] = static_cast<uint8_t>(std::clamp(static_cast<int>(make(i)), 0, 255));
  return out;
}

void look_up(Picture& picture, const ColorTables& tables) {
  for (size_t i = 0; i < picture.pixels.size(); i += 3)
    for (size_t colour = 0; colour < 3; ++colour) picture.pixels[i + colour] = tables[colour][picture.pixels[i + colour]];
}
void look_up(Picture& picture, const ColorTable& table) {
  for (uint8_t& byte : picture.pixels) byte = table[byte];
}

// Factor 0: only `from`; 1: only `to`; cut off, not rounded.
uint8_t blended(int from, int to, float factor) {
  return static_cast<uint8_t>(std::clamp(static_cast<float>(from) + factor * static_cast<float>(to - from), 0.0f, 255.0f));
}

// ITU-R 601's weights in 16 bits.
int grey_of(const uint8_t* pixel) { return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16; }

void change_contrast(Picture& picture, float factor) {
  int64_t sum = 0;
  const int64_t pixels = picture.width * picture.height;
  for (int64_t i = 0; i < pixels; ++i) sum += grey_of(picture.pixels.data() + 3 * i);
  const auto mean = static_cast<int>((2 * sum + pixels) / (2 * pixels));  // rounded
  look_up(picture, table_of([&](int byte) { return blended(mean, byte, factor); }));
}

void change_saturation(Picture& picture, float factor) {
  for (size_t i = 0; i < picture.pixels.size(); i += 3) {
    uint8_t* const pixel = &picture.pixels[i];
    const int grey = grey_of(pixel);
    for (int colour = 0; colour < 3; ++colour) pixel[colour] = blended(grey, pixel[colour], factor);
  }
}

// Blends with the picture smoothed: the middle counts 5 of 13, its eight neighbours 1 each; the border has not eight and stays.
Picture sharpened(const Picture& picture, float factor) {
  Picture out = picture;
  const int64_t row = picture.width * 3;
  for (int64_t y = 1; y + 1 < picture.height; ++y)
    for (int64_t x = 3; x + 3 < row; ++x) {
      const uint8_t* const at = picture.pixels.data() + y * row + x;
      int sum = 4 * at[0];
      for (const int64_t line : {-row, int64_t{0}, row}) sum += at[line - 3] + at[line] + at[line + 3];
      const int smooth = (2 * sum + 13) / 26;  // rounded
      out.pixels[static_cast<size_t>(y * row + x)] = blended(smooth, at[0], factor);
    }
  return out;
}

using Histogram = std::array<int64_t, 256>;

// make(histogram of a colour) -> ColorTable
template <class Make>
void by_histograms(Picture& picture, const Make& make) {
  std::array<Histogram, 3> counts{};
  for (size_t i = 0; i < picture.pixels.size(); ++i) ++counts[i % 3][picture.pixels[i]];
  look_up(picture, {make(counts[0]), make(counts[1]), make(counts[2])});
}

ColorTable equalizing(const Histogram& counts) {
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

ColorTable stretching(const Histogram& counts) {
  const auto some = [](int64_t count) { return count > 0; };
  const int64_t low = std::find_if(counts.begin(), counts.end(), some) - counts.begin(),
                high = 255 - (std::find_if(counts.rbegin(), counts.rend(), some) - counts.rbegin());
  if (high <= low) return table_of([](int byte) { return byte; });
  const double scale = 255.0 / static_cast<double>(high - low), offset = static_cast<double>(-low) * scale;
  return table_of([&](int byte) { return std::clamp(byte * scale + offset, 0.0, 255.0); });
}

// Where a pixel comes from: the matrix times its place seen from the middle, plus a step.
struct Warp {
  double xx = 1, xy = 0, yx = 0, yy = 1, x = 0, y = 0;
};

// Between four pixels, in parts of 256; grey comes in from outside.
Picture warped(const Picture& picture, const Warp& warp) {
  constexpr int grey = 128, one = 256;
  const int64_t width = picture.width, height = picture.height;
  Picture out{width, height};
  out.pixels.resize(picture.pixels.size());
  const double middle_x = static_cast<double>(width - 1) / 2, middle_y = static_cast<double>(height - 1) / 2;
  const uint8_t* const from = picture.pixels.data();
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x, to += 3) {
      const double dx = static_cast<double>(x) - middle_x, dy = static_cast<double>(y) - middle_y;
      const auto at_x = static_cast<int64_t>(std::floor((warp.xx * dx + warp.xy * dy + warp.x + middle_x) * one + 0.5)),
                 at_y = static_cast<int64_t>(std::floor((warp.yx * dx + warp.yy * dy + warp.y + middle_y) * one + 0.5));
      const int64_t left = at_x >> 8, top = at_y >> 8;
      const int right_share = static_cast<int>(at_x & 255), low_share = static_cast<int>(at_y & 255);
      const std::array<int, 4> shares{(one - low_share) * (one - right_share), (one - low_share) * right_share,
                                      low_share * (one - right_share), low_share * right_share};
      std::array<int, 3> sums{one * one / 2, one * one / 2, one * one / 2};
      for (int corner = 0; corner < 4; ++corner) {
        const int64_t column = left + (corner & 1), row = top + (corner >> 1);
        const bool inside = column >= 0 && column < width && row >= 0 && row < height;
        const uint8_t* const pixel = inside ? from + 3 * (row * width + column) : nullptr;
        const int share = shares[static_cast<size_t>(corner)];
        for (size_t colour = 0; colour < 3; ++colour) sums[colour] += share * (inside ? pixel[colour] : grey);
      }
      for (size_t colour = 0; colour < 3; ++colour) to[colour] = static_cast<uint8_t>(sums[colour] >> 16);
    }
  return out;
}

Warp warp_of(const Picture& picture, PictureOp op, double amount) {
  const auto width = static_cast<double>(picture.width), height = static_cast<double>(picture.height);
  switch (op) {
    case PictureOp::rotate: {
      const double angle = amount * std::numbers::pi / 180, c = std::cos(angle), s = std::sin(angle);
      return {.xx = c, .xy = -s, .yx = s, .yy = c};
    }
    case PictureOp::shear_x: return {.xy = -amount};
    case PictureOp::shear_y: return {.yx = -amount};
    case PictureOp::translate_x: return {.x = -amount * width};
    default: return {.y = -amount * height};
  }
}

}  // namespace

Picture changed(const Picture& picture, PictureOp op, float amount) {
  check(picture.width > 0 && picture.height > 0 && std::ssize(picture.pixels) == picture.width * picture.height * 3, "changed: found ",
        picture.pixels.size(), " bytes, expected 3 for each of ", picture.width, " x ", picture.height, " pixels");
  Picture out;
  switch (op) {
    case PictureOp::rotate:
    case PictureOp::shear_x:
    case PictureOp::shear_y:
    case PictureOp::translate_x:
    case PictureOp::translate_y: return warped(picture, warp_of(picture, op, static_cast<double>(amount)));
    case PictureOp::sharpness: return sharpened(picture, amount);
    default: out = picture;
  }
  switch (op) {
    case PictureOp::brightness: look_up(out, table_of([&](int byte) { return blended(0, byte, amount); })); break;
    case PictureOp::contrast: change_contrast(out, amount); break;
    case PictureOp::saturation: change_saturation(out, amount); break;
    case PictureOp::posterize: {
      const auto bits = static_cast<int>(amount);
      check(bits >= 1 && bits <= 8, "posterize: found ", amount, " bits, expected 1 to 8");
      look_up(out, table_of([&](int byte) { return byte & (0xff << (8 - bits)); }));
      break;
    }
    case PictureOp::solarize:
      look_up(out, table_of([&](int byte) { return static_cast<float>(byte) < amount ? byte : 255 - byte; }));
      break;
    case PictureOp::equalize: by_histograms(out, equalizing); break;
    case PictureOp::autocontrast: by_histograms(out, stretching); break;
    case PictureOp::invert: look_up(out, table_of([](int byte) { return 255 - byte; })); break;
    default: fail("changed: found op ", static_cast<int>(op), ", expected one below ", kPictureOps);
  }
  return out;
}

void flip_sideways(Picture& picture) {
  for (int64_t y = 0; y < picture.height; ++y) {
    uint8_t* left = picture.pixels.data() + y * picture.width * 3;
    uint8_t* right = left + (picture.width - 1) * 3;
    for (; left < right; left += 3, right -= 3)
      for (int colour = 0; colour < 3; ++colour) std::swap(left[colour], right[colour]);
  }
}

Picture cropped(const Picture& picture, int64_t left, int64_t top, int64_t width, int64_t height) {
  check(width > 0 && height > 0, "cropped: found a wish for ", width, " x ", height, " pixels, expected at least 1 x 1");
  Picture out{width, height};
  out.pixels.resize(static_cast<size_t>(3 * width * height));
  const int64_t x = std::max<int64_t>(-left, 0), count = std::min(width, picture.width - left) - x;
  if (count <= 0) return out;
  for (int64_t y = std::max<int64_t>(-top, 0); y < std::min(height, picture.height - top); ++y)
    std::copy_n(picture.pixels.data() + ((top + y) * picture.width + left + x) * 3, 3 * count, out.pixels.data() + (y * width + x) * 3);
  return out;
}

}  // namespace heed
