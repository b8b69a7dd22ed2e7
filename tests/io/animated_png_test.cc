#include "heed/io/animated_png.h"

#include <zlib.h>

#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

uint32_t big_endian_at(const std::string& bytes, size_t at) {
  uint32_t out = 0;
  for (size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return out;
}

struct FilmChunk {
  std::string kind, data;
};

// Verifies every checksum.
std::vector<FilmChunk> film_chunks(const std::string& bytes) {
  std::vector<FilmChunk> out;
  for (size_t at = 8; at < bytes.size();) {
    const size_t length = big_endian_at(bytes, at);
    out.push_back({bytes.substr(at + 4, 4), bytes.substr(at + 8, length)});
    const std::string summed = out.back().kind + out.back().data;
    EXPECT_EQ(big_endian_at(bytes, at + 8 + length),
              crc32(0, reinterpret_cast<const Bytef*>(summed.data()), static_cast<uInt>(summed.size())));
    at += 12 + length;
  }
  return out;
}

Image plain_image(int64_t width, int64_t height, uint8_t grey) {
  return {width, height, std::vector<uint8_t>(static_cast<size_t>(3 * width * height), grey)};
}

TEST(AnimatedPng, stores_changed_rectangles_and_durations) {
  Image first = plain_image(9, 7, 200), second = first, third = second;
  second.pixels[3 * (2 * 9 + 3)] = 10;      // row 2, column 3
  second.pixels[3 * (5 * 9 + 4) + 2] = 20;  // row 5, column 4
  third = second;
  AnimatedPng film(3);
  film.add(first, 1.5);
  film.add(second, 0.25);
  film.add(third, 1e9);
  const std::string bytes = film.bytes();
  const Image shown = parse_image(std::as_bytes(std::span(bytes)), "film");  // as seen by programs without APNG support
  EXPECT_EQ(shown.pixels, first.pixels);
  const std::vector<FilmChunk> chunks = film_chunks(bytes);
  std::string kinds;
  for (const FilmChunk& each : chunks) kinds += each.kind + " ";
  EXPECT_EQ(kinds, "IHDR acTL fcTL IDAT fcTL fdAT fcTL fdAT IEND ");
  EXPECT_EQ(big_endian_at(chunks[1].data, 0), 3u);
  uint32_t number = 0;  // one sequence over fcTL and fdAT
  for (const FilmChunk& each : chunks) {
    if (each.kind != "fcTL" && each.kind != "fdAT") continue;
    EXPECT_EQ(big_endian_at(each.data, 0), number++);
  }
  const auto numbers = [](const FilmChunk& chunk) {
    std::vector<uint32_t> out;
    for (size_t i = 1; i < 6; ++i) out.push_back(big_endian_at(chunk.data, 4 * i));
    return out;
  };
  EXPECT_EQ(numbers(chunks[2]), (std::vector<uint32_t>{9, 7, 0, 0, 150 << 16 | 100}));
  EXPECT_EQ(numbers(chunks[4]), (std::vector<uint32_t>{2, 4, 3, 2, 25 << 16 | 100}));
  EXPECT_EQ(numbers(chunks[6]), (std::vector<uint32_t>{1, 1, 0, 0, 65535u << 16 | 100}));
  // The changed rectangle of the second image as a separate PNG.
  const std::string part = png_bytes({2, 4, std::vector<uint8_t>(24, 0)});
  std::string inside = part.substr(0, 33), data = "IDAT" + chunks[5].data.substr(4);
  const auto four = [](uint32_t value) {
    std::string out;
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 255);
    return out;
  };
  inside += four(static_cast<uint32_t>(data.size() - 4)) + data +
            four(static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())))) +
            part.substr(part.size() - 12);
  const Image cut = parse_image(std::as_bytes(std::span(inside)), "part");
  std::vector<uint8_t> expected(24, 200);
  expected[0] = 10;
  expected[3 * (3 * 2 + 1) + 2] = 20;
  EXPECT_EQ(cut.pixels, expected);
}

TEST(AnimatedPng, refuses_wrong_counts_and_sizes) {
  expect_error([] { AnimatedPng film(0); }, "animation: 0 images, expected 1 or more");
  AnimatedPng film(2);
  film.add(plain_image(2, 2, 0), 1);
  expect_error([&] { film.bytes(); }, "animation: 1 of 2 announced images");
  expect_error([&] { film.add(plain_image(3, 2, 0), 1); }, "animation: an image of 3 x 2 pixels after one of 2 x 2");
  film.add(plain_image(2, 2, 9), 1);
  expect_error([&] { film.add(plain_image(2, 2, 9), 1); }, "animation: more than the 2 announced images");
}

}  // namespace
}  // namespace heed::test
