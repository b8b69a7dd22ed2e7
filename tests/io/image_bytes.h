// Small image files, built byte by byte.
#pragma once

#include <zlib.h>

#include "heed/io/image.h"
#include "tests/io/files.h"

namespace heed::test {

inline std::string zeros(size_t count) { return std::string(count, '\0'); }

inline std::string little(uint32_t number, int bytes = 4) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> 8 * i & 255);
  return out;
}
inline std::string big(uint32_t number, int bytes = 4) {
  const std::string reversed = little(number, bytes);
  return {reversed.rbegin(), reversed.rend()};
}

inline Image parsed(std::string_view bytes, int64_t max_pixels = kMaxImagePixels) {
  return parse_image(std::as_bytes(std::span(bytes)), "held", max_pixels);
}

inline Image six_pixels() {  // 3 x 2: 10, 20, 30, ... 180
  Image out{3, 2};
  for (int i = 1; i <= 18; ++i) out.pixels.push_back(static_cast<uint8_t>(10 * i));
  return out;
}

// An Exif block with only the orientation tag.
inline std::string exif(int orientation, bool big_endian) {
  const auto number = [&](uint32_t value, int bytes) { return big_endian ? big(value, bytes) : little(value, bytes); };
  return (big_endian ? "MM" : "II") + number(42, 2) + number(8, 4) + number(1, 2) + number(0x0112, 2) + number(3, 2) + number(1, 4) +
         number(static_cast<uint32_t>(orientation), 2) + zeros(2) + number(0, 4);
}

// A chunk of a PNG file.
inline std::string chunk(const std::string& name, const std::string& data) {
  const std::string body = name + data;
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big(static_cast<uint32_t>(data.size())) + body + big(static_cast<uint32_t>(sum));
}
inline std::string png_with(std::string png, const std::string& chunks) { return png.insert(33, chunks); }  // after the header

inline std::string jpeg_with_exif(std::string jpeg, const std::string& block) {
  const std::string body = "Exif" + zeros(2) + block;
  return jpeg.insert(2, "\xff\xe1" + big(static_cast<uint32_t>(body.size()) + 2, 2) + body);
}

// six_pixels(), lossless, written by libwebp.
inline const std::string kWebP(
    "RIFF\x30\0\0\0WEBPVP8L\x23\0\0\0\x2f\x02\x40\0\0\x2f\x20\x16\x4c\x24\x76\xe7\xef\x99\xc4\x15\x3c\xea\x31\xff\xc9\x1a\x6a\xda\x36\x60"
    "\x43\x9d"
    "\x7f\x39\x35\xa2\xff\x31\xbd\0",
    56);

inline std::string webp(const std::vector<std::pair<std::string, std::string>>& chunks) {
  std::string body = "WEBP";
  for (const auto& [name, data] : chunks) body += name + little(static_cast<uint32_t>(data.size())) + data + zeros(data.size() % 2);
  return "RIFF" + little(static_cast<uint32_t>(body.size())) + body;
}
inline std::string webp_with_exif(const std::string& block) {
  const std::string canvas("\x08\0\0\0\x02\0\0\x01\0\0", 10);
  return webp({{"VP8X", canvas}, {"VP8L", kWebP.substr(20, 35)}, {"EXIF", block}});
}

struct BmpOptions {
  int32_t width = 3, height = 2;
  uint32_t bits = 24, compression = 0, colours = 0;
};
// extra: palette or masks. rows: bottom row first, each padded to 4 bytes
inline std::string bmp(const BmpOptions& options, const std::string& extra, const std::string& rows) {
  const std::string header = little(40) + little(static_cast<uint32_t>(options.width)) + little(static_cast<uint32_t>(options.height)) +
                             little(1, 2) + little(options.bits, 2) + little(options.compression) + zeros(12) + little(options.colours) +
                             zeros(4);
  const auto start = static_cast<uint32_t>(14 + header.size() + extra.size());
  return "BM" + little(start + static_cast<uint32_t>(rows.size())) + zeros(4) + little(start) + header + extra + rows;
}

}  // namespace heed::test
