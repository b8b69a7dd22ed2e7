// The chunks that make a film of a PNG file: acTL, fcTL and fdAT (PNG, third edition, section 11.3.6). Everything between them is what
// libpng writes for each picture.
#include "heed/io/film.h"

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
  constexpr size_t signature = 8, around = 12;  // length, kind and checksum
  std::vector<Chunk> out;
  for (size_t at = signature; at + around <= png.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(png[at + i]);
    out.push_back({png.substr(at + 4, 4), png.substr(at + 8, length)});
    at += around + length;
  }
  return out;
}

struct Part {
  int64_t left = 0, top = 0, width = 1, height = 1;
};

// What differs between two pictures of the same size; a pixel where nothing does.
Part changed(const Picture& before, const Picture& now) {
  int64_t left = now.width, right = 0, top = now.height, bottom = 0;
  for (int64_t y = 0; y < now.height; ++y) {
    const auto a = before.pixels.begin() + 3 * y * now.width, b = now.pixels.begin() + 3 * y * now.width;
    if (std::equal(a, a + 3 * now.width, b)) continue;
    top = std::min(top, y);
    bottom = y + 1;
    for (int64_t x = 0; x < now.width; ++x)
      if (!std::equal(a + 3 * x, a + 3 * x + 3, b + 3 * x)) left = std::min(left, x), right = std::max(right, x + 1);
  }
  if (bottom == 0) return {};
  return {left, top, right - left, bottom - top};
}

Picture cut_out(const Picture& picture, const Part& part) {
  Picture out{.width = part.width, .height = part.height};
  for (int64_t y = part.top; y < part.top + part.height; ++y) {
    const auto row = picture.pixels.begin() + 3 * (y * picture.width + part.left);
    out.pixels.insert(out.pixels.end(), row, row + 3 * part.width);
  }
  return out;
}

}  // namespace

Film::Film(int64_t frames) : frames_(frames) { check(frames >= 1, "film: ", frames, " pictures, expected 1 or more"); }

void Film::add(const Picture& picture, double seconds) {
  check(added_ < frames_, "film: more than the ", frames_, " pictures that were told");
  const bool first = added_ == 0;
  check(first || (picture.width == last_.width && picture.height == last_.height), "film: a picture of ", picture.width, " x ",
        picture.height, " pixels behind one of ", last_.width, " x ", last_.height);
  const Part part = first ? Part{0, 0, picture.width, picture.height} : changed(last_, picture);
  const std::string png = png_bytes(first ? picture : cut_out(picture, part));
  const std::vector<Chunk> chunks = chunks_in(png);
  if (first)
    out_ =
        png.substr(0, 8) + chunk("IHDR", chunks[0].data) + chunk("acTL", big_endian(static_cast<uint64_t>(frames_), 4) + big_endian(0, 4));
  const auto number = [](int64_t value) { return big_endian(static_cast<uint64_t>(value), 4); };
  const auto hundredths = static_cast<uint64_t>(std::clamp(std::lround(100 * seconds), 1L, 65535L));
  // Nothing is taken away before the next one, and pixels take the place of those that were there.
  out_ += chunk("fcTL", big_endian(chunks_++, 4) + number(part.width) + number(part.height) + number(part.left) + number(part.top) +
                            big_endian(hundredths, 2) + big_endian(100, 2) + big_endian(0, 2));
  for (const Chunk& each : chunks)
    if (each.kind == "IDAT") out_ += first ? chunk("IDAT", each.data) : chunk("fdAT", big_endian(chunks_++, 4) + each.data);
  last_ = picture;
  ++added_;
}

std::string Film::bytes() const {
  check(added_ == frames_, "film: ", added_, " pictures of the ", frames_, " that were told");
  return out_ + chunk("IEND", "");
}

}  // namespace heed
