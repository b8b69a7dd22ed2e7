// The animation chunks of PNG: acTL, fcTL and fdAT (PNG, third edition, section 11.3.6). The image data is written by libpng.
#include "heed/io/animated_png.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

std::string big_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 255);
  return out;
}

std::string chunk(const std::string& kind, const std::string& data) {
  const std::string whole = kind + data;
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(whole.data()), static_cast<uInt>(whole.size()));
  return big_endian(data.size(), 4) + whole + big_endian(sum, 4);
}

struct Chunk {
  std::string kind, data;
};

std::vector<Chunk> chunks_in(const std::string& png) {
  constexpr size_t signature = 8, overhead = 12;  // length, kind and checksum
  std::vector<Chunk> out;
  for (size_t at = signature; at + overhead <= png.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(png[at + i]);
    out.push_back({png.substr(at + 4, 4), png.substr(at + 8, length)});
    at += overhead + length;
  }
  return out;
}

struct Box {
  int64_t left = 0, top = 0, width = 1, height = 1;
};

// The bounding box of the differences between two images of the same size; one pixel if they are equal.
Box difference(const Image& before, const Image& after) {
  int64_t left = after.width, right = 0, top = after.height, bottom = 0;
  for (int64_t y = 0; y < after.height; ++y) {
    const auto a = before.pixels.begin() + 3 * y * after.width, b = after.pixels.begin() + 3 * y * after.width;
    if (std::equal(a, a + 3 * after.width, b)) continue;
    top = std::min(top, y);
    bottom = y + 1;
    for (int64_t x = 0; x < after.width; ++x)
      if (!std::equal(a + 3 * x, a + 3 * x + 3, b + 3 * x)) left = std::min(left, x), right = std::max(right, x + 1);
  }
  if (bottom == 0) return {};
  return {left, top, right - left, bottom - top};
}

Image crop(const Image& image, const Box& box) {
  Image out{.width = box.width, .height = box.height};
  for (int64_t y = box.top; y < box.top + box.height; ++y) {
    const auto row = image.pixels.begin() + 3 * (y * image.width + box.left);
    out.pixels.insert(out.pixels.end(), row, row + 3 * box.width);
  }
  return out;
}

}  // namespace

AnimatedPng::AnimatedPng(int64_t frames) : frames_(frames) { check(frames >= 1, "animation: ", frames, " images, expected 1 or more"); }

void AnimatedPng::add(const Image& image, double seconds) {
  check(added_ < frames_, "animation: more than the ", frames_, " announced images");
  const bool first = added_ == 0;
  check(first || (image.width == last_.width && image.height == last_.height), "animation: an image of ", image.width, " x ", image.height,
        " pixels after one of ", last_.width, " x ", last_.height);
  const Box box = first ? Box{0, 0, image.width, image.height} : difference(last_, image);
  const std::string png = png_bytes(first ? image : crop(image, box));
  const std::vector<Chunk> chunks = chunks_in(png);
  if (first)
    out_ =
        png.substr(0, 8) + chunk("IHDR", chunks[0].data) + chunk("acTL", big_endian(static_cast<uint64_t>(frames_), 4) + big_endian(0, 4));
  const auto number = [](int64_t value) { return big_endian(static_cast<uint64_t>(value), 4); };
  const auto hundredths = static_cast<uint64_t>(std::clamp(std::lround(100 * seconds), 1L, 65535L));
  // dispose_op none, blend_op source: the new pixels replace the old ones.
  out_ += chunk("fcTL", big_endian(chunks_++, 4) + number(box.width) + number(box.height) + number(box.left) + number(box.top) +
                            big_endian(hundredths, 2) + big_endian(100, 2) + big_endian(0, 2));
  for (const Chunk& each : chunks)
    if (each.kind == "IDAT") out_ += first ? chunk("IDAT", each.data) : chunk("fdAT", big_endian(chunks_++, 4) + each.data);
  last_ = image;
  ++added_;
}

std::string AnimatedPng::bytes() const {
  check(added_ == frames_, "animation: ", added_, " of ", frames_, " announced images");
  return out_ + chunk("IEND", "");
}

}  // namespace heed
