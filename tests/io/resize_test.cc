// Resizing against Pillow (tests/fixtures/make_images.py) and against the plain formula in double.
#include "heed/io/resize.h"

#include <cmath>

#include "heed/core/parallel.h"
#include "heed/io/safetensors.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

Image smooth(int64_t width, int64_t height) {
  Image out{width, height};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        out.pixels.push_back(
            static_cast<uint8_t>(127.5 + 100 * std::sin(0.11 * static_cast<double>(x + c)) * std::cos(0.07 * static_cast<double>(y))));
  return out;
}

// Triangle filters widened by the reduction factor, over both axes without intermediate rounding.
double plain_bilinear(const Image& from, int64_t width, int64_t height, int64_t x, int64_t y, int64_t c) {
  const auto weights = [](int64_t size, int64_t to, int64_t i) {
    const double scale = static_cast<double>(size) / static_cast<double>(to), wide = std::max(scale, 1.0);
    std::vector<double> out(static_cast<size_t>(size));
    double sum = 0;
    for (int64_t k = 0; k < size; ++k) {
      const double distance = (static_cast<double>(k) + 0.5 - (static_cast<double>(i) + 0.5) * scale) / wide;
      sum += out[static_cast<size_t>(k)] = std::max(1 - std::abs(distance), 0.0);
    }
    for (double& w : out) w /= sum;
    return out;
  };
  const std::vector<double> across = weights(from.width, width, x), down = weights(from.height, height, y);
  double out = 0;
  for (int64_t b = 0; b < from.height; ++b)
    for (int64_t a = 0; a < from.width; ++a)
      out += across[static_cast<size_t>(a)] * down[static_cast<size_t>(b)] * from.pixels[static_cast<size_t>((b * from.width + a) * 3 + c)];
  return out;
}

TEST(Resize, matches_pillow_exactly_with_every_filter) {
  const Safetensors expected = Safetensors::open(fixture("images/expected.safetensors"));
  const Image noise = read_image(fixture("images/noise.png"));
  int count = 0;
  for (const std::string& name : expected.names()) {
    if (!name.starts_with("resize/")) continue;
    SCOPED_TRACE(name);
    const Tensor pixels = expected.tensor(name);
    const Image out = resize(noise, pixels.size(1), pixels.size(0), static_cast<Resample>(name[7] - '0'));
    EXPECT_TRUE(out.pixels == pixels.to_vector<uint8_t>());
    ++count;
  }
  EXPECT_EQ(count, 36);
}

TEST(Resize, is_within_one_level_of_the_formula) {
  const Image from = smooth(61, 43);
  for (const auto& [width, height] : {std::pair{13, 11}, {100, 7}, {1, 1}, {70, 50}, {61, 10}}) {
    const Image out = resize(from, width, height);
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        for (int64_t c = 0; c < 3; ++c)
          ASSERT_NEAR(out.pixels[static_cast<size_t>((y * width + x) * 3 + c)], plain_bilinear(from, width, height, x, y, c), 1.01);
  }
}

TEST(Resize, keeps_uniform_images_uniform) {
  const Image flat{31, 17, std::vector<uint8_t>(31 * 17 * 3, 201)};
  for (int filter = 0; filter < 6; ++filter)
    for (const uint8_t shade : resize(flat, 7, 40, static_cast<Resample>(filter)).pixels) ASSERT_EQ(shade, 201);
}

TEST(Resize, has_the_same_bits_with_any_number_of_threads) {
  const Image from = smooth(401, 300);
  const int before = thread_count();
  for (int filter = 0; filter < 6; ++filter) {
    std::vector<uint8_t> first;
    for (const int threads : {1, 2, 7}) {
      set_thread_count(threads);
      const Image out = resize(from, 120, 90, static_cast<Resample>(filter));
      if (threads == 1) first = out.pixels;
      EXPECT_TRUE(out.pixels == first);
    }
  }
  set_thread_count(before);
}

TEST(Resize, crops_the_middle_and_pads_with_black) {
  Image from{5, 3};
  for (uint8_t i = 1; i <= 15; ++i) from.pixels.insert(from.pixels.end(), 3, i);
  const auto shades = [&](int64_t width, int64_t height) {
    const Image out = center_crop(from, width, height);
    std::vector<int> each;
    for (size_t i = 0; i < out.pixels.size(); i += 3) each.push_back(out.pixels[i]);
    return each;
  };
  EXPECT_EQ(shades(3, 1), (std::vector{7, 8, 9}));
  EXPECT_EQ(shades(2, 2), (std::vector{2, 3, 7, 8}));   // an odd surplus is cut at the right and bottom
  EXPECT_EQ(shades(1, 4), (std::vector{0, 3, 8, 13}));  // an odd deficit is padded at the left and top
  EXPECT_EQ(shades(8, 1), (std::vector{0, 0, 6, 7, 8, 9, 10, 0}));
  EXPECT_EQ(center_crop(from, 5, 3).pixels, from.pixels);
}

TEST(Resize, refuses_invalid_sizes) {
  const Image from = smooth(5, 4);
  expect_error([&] { resize(from, 0, 3); }, "resize: found a size of 0 x 3 pixels");
  expect_error([&] { resize(from, 3, -1); }, "resize: found a size of 3 x -1 pixels");
  expect_error([&] { resize(from, int64_t{1} << 40, int64_t{1} << 40); }, "and at most 178956970");
  expect_error([&] { resize(from, 3, 3, static_cast<Resample>(6)); }, "resize: found filter 6, expected one from 0 to 5");
  expect_error([&] { resize(Image{}, 3, 3); }, "resize: found 0 bytes");
  expect_error([&] { resize(Image{2, 2, {1, 2}}, 3, 3); }, "resize: found 2 bytes, expected 3 for each of 2 x 2 pixels");
  expect_error([&] { center_crop(from, 0, 0); }, "center_crop: found a size of 0 x 0 pixels");
}

}  // namespace
}  // namespace heed::test
