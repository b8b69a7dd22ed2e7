// Image operations against independent per-pixel formulas.
#include "heed/data/image_ops.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/pixels.h"

namespace heed::test {
namespace {

Image apply_op(const Image& image, ImageOp op, float amount = 0) {
  return apply_step(image, pixel_step(op, amount, image.width, image.height));
}

using Formula = std::function<double(int64_t x, int64_t y, int64_t colour)>;

// Each byte is the formula's value, truncated; `near`: tolerance instead of equality.
void expect_image(const Image& found, int64_t width, int64_t height, const Formula& formula, double near = 0) {
  ASSERT_EQ(found.width, width);
  ASSERT_EQ(found.height, height);
  ASSERT_EQ(std::ssize(found.pixels), width * height * 3);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t colour = 0; colour < 3; ++colour) {
        const double value = std::min(std::max(formula(x, y, colour), 0.0), 255.0);
        if (near == 0)
          ASSERT_EQ(at(found, x, y, colour), static_cast<int>(value)) << x << ", " << y << ", " << colour;
        else
          ASSERT_NEAR(at(found, x, y, colour), value, near) << x << ", " << y << ", " << colour;
      }
}

double grey(const Image& p, int64_t x, int64_t y) { return 0.299 * at(p, x, y, 0) + 0.587 * at(p, x, y, 1) + 0.114 * at(p, x, y, 2); }

TEST(ImageOps, colours_match_the_formulas) {
  const Image p = some_image(9, 7);
  double mean = 0;
  for (int64_t y = 0; y < 7; ++y)
    for (int64_t x = 0; x < 9; ++x) mean += std::round(grey(p, x, y)) / 63;
  mean = std::round(mean);
  for (const float factor : {0.0f, 0.5f, 1.0f, 1.75f}) {  // exact in binary
    const auto f = static_cast<double>(factor);
    expect_image(apply_op(p, ImageOp::brightness, factor), 9, 7, [&](auto x, auto y, auto c) { return f * at(p, x, y, c); });
    expect_image(apply_op(p, ImageOp::contrast, factor), 9, 7, [&](auto x, auto y, auto c) { return f * at(p, x, y, c) + (1 - f) * mean; });
    expect_image(apply_op(p, ImageOp::saturation, factor), 9, 7,
                 [&](auto x, auto y, auto c) { return f * at(p, x, y, c) + (1 - f) * std::round(grey(p, x, y)); });
    expect_image(apply_op(p, ImageOp::sharpness, factor), 9, 7, [&](auto x, auto y, auto c) -> double {
      if (x == 0 || y == 0 || x == 8 || y == 6) return at(p, x, y, c);
      double sum = 4.0 * at(p, x, y, c);
      for (int64_t i = 0; i < 9; ++i) sum += at(p, x + i % 3 - 1, y + i / 3 - 1, c);
      return f * at(p, x, y, c) + (1 - f) * std::round(sum / 13);
    });
  }
  expect_image(apply_op(p, ImageOp::invert), 9, 7, [&](auto x, auto y, auto c) { return 255 - at(p, x, y, c); });
  expect_image(apply_op(p, ImageOp::posterize, 3), 9, 7, [&](auto x, auto y, auto c) { return at(p, x, y, c) / 32 * 32; });
  expect_image(apply_op(p, ImageOp::solarize, 100), 9, 7, [&](auto x, auto y, auto c) {
    const int byte = at(p, x, y, c);
    return byte >= 100 ? 255 - byte : byte;
  });
}

TEST(ImageOps, autocontrast_covers_the_full_range) {
  const Image p = some_image(9, 7);
  std::array<int, 3> low{255, 255, 255}, high{};
  for (size_t i = 0; i < p.pixels.size(); ++i) {
    low[i % 3] = std::min<int>(low[i % 3], p.pixels[i]);
    high[i % 3] = std::max<int>(high[i % 3], p.pixels[i]);
  }
  expect_image(
      apply_op(p, ImageOp::autocontrast), 9, 7,
      [&](auto x, auto y, int64_t colour) {
        const auto c = static_cast<size_t>(colour);
        return 255.0 * (at(p, x, y, colour) - low[c]) / (high[c] - low[c]) - 0.5;
      },
      0.51);
  const Image flat{2, 1, {9, 9, 9, 9, 9, 9}};
  EXPECT_EQ(apply_op(flat, ImageOp::autocontrast).pixels, flat.pixels);
  EXPECT_EQ(apply_op(flat, ImageOp::equalize).pixels, flat.pixels);
}

// Equalization maps a value to its cumulative fraction.
TEST(ImageOps, equalize_flattens_the_histogram) {
  const Image p = some_image(255, 64);
  std::array<std::vector<int>, 3> sorted;
  for (size_t i = 0; i < p.pixels.size(); ++i) sorted[i % 3].push_back(p.pixels[i]);
  for (auto& bytes : sorted) std::sort(bytes.begin(), bytes.end());
  expect_image(
      apply_op(p, ImageOp::equalize), 255, 64,
      [&](auto x, auto y, int64_t c) {
        const auto& bytes = sorted[static_cast<size_t>(c)];
        return 256.0 * static_cast<double>(std::lower_bound(bytes.begin(), bytes.end(), at(p, x, y, c)) - bytes.begin()) / (255 * 64);
      },
      6);
  const Image even = apply_op(p, ImageOp::equalize);
  EXPECT_LT(*std::min_element(even.pixels.begin(), even.pixels.end()), 3);
  EXPECT_GT(*std::max_element(even.pixels.begin(), even.pixels.end()), 250);
}

TEST(ImageOps, geometric_ops_are_exact_on_whole_pixels) {
  const Image p = some_image(8, 8);
  expect_image(apply_op(p, ImageOp::rotate, 90), 8, 8, [&](auto x, auto y, auto c) { return at(p, 7 - y, x, c); });
  expect_image(apply_op(p, ImageOp::rotate, -90), 8, 8, [&](auto x, auto y, auto c) { return at(p, y, 7 - x, c); });
  expect_image(apply_op(p, ImageOp::rotate, 180), 8, 8, [&](auto x, auto y, auto c) { return at(p, 7 - x, 7 - y, c); });
  expect_image(apply_op(p, ImageOp::translate_x, 0.25f), 8, 8, [&](auto x, auto y, auto c) { return at(p, x - 2, y, c, 128); });
  expect_image(apply_op(p, ImageOp::translate_y, -0.125f), 8, 8, [&](auto x, auto y, auto c) { return at(p, x, y + 1, c, 128); });
  for (const ImageOp op : {ImageOp::rotate, ImageOp::shear_x, ImageOp::shear_y, ImageOp::translate_x})
    EXPECT_EQ(apply_op(p, op, 0).pixels, p.pixels);
}

TEST(ImageOps, geometric_ops_interpolate) {
  const Image p = some_image(11, 6);
  const auto interpolated = [&](double x, double y, int64_t c) {  // bilinear interpolation as a sum over all pixels
    double sum = 0;
    for (int64_t row = -20; row < 30; ++row)
      for (int64_t column = -20; column < 30; ++column)
        sum += at(p, column, row, c, 128) * std::max(0.0, 1 - std::abs(x - static_cast<double>(column))) *
               std::max(0.0, 1 - std::abs(y - static_cast<double>(row)));
    return sum;
  };
  const double angle = 25 * 3.14159265358979 / 180;
  expect_image(
      apply_op(p, ImageOp::rotate, 25), 11, 6,
      [&](auto x, auto y, auto c) {
        const double dx = static_cast<double>(x) - 5, dy = static_cast<double>(y) - 2.5;
        return interpolated(5 + std::cos(angle) * dx - std::sin(angle) * dy, 2.5 + std::sin(angle) * dx + std::cos(angle) * dy, c);
      },
      1.6);
  expect_image(
      apply_op(p, ImageOp::shear_x, 0.3f), 11, 6,
      [&](auto x, auto y, auto c) {
        return interpolated(static_cast<double>(x) - 0.3 * (static_cast<double>(y) - 2.5), static_cast<double>(y), c);
      },
      1.6);
  expect_image(
      apply_op(p, ImageOp::shear_y, -0.2f), 11, 6,
      [&](auto x, auto y, auto c) {
        return interpolated(static_cast<double>(x), static_cast<double>(y) + 0.2 * (static_cast<double>(x) - 5), c);
      },
      1.6);
}

}  // namespace
}  // namespace heed::test
