// BMP of Windows and OS/2: uncompressed, with a palette of 1, 4 or 8 bits, or 16, 24 or 32 bits of colour, optionally with bit masks.
// Run-length encoding and embedded JPEG or PNG are refused. Alpha is dropped.
#include <array>
#include <bit>
#include <cstring>

#include "heed/io/image_formats.h"

namespace heed::detail {
namespace {

constexpr size_t kFileHeader = 14;  // bytes, before the image header
constexpr uint32_t kRaw = 0, kBitfields = 3, kAlphaBitfields = 6;

// Little-endian. The caller has checked the size.
uint32_t number(Bytes file, size_t at, size_t size) {
  uint32_t out = 0;
  for (size_t i = size; i-- > 0;) out = out << 8 | std::to_integer<uint32_t>(file[at + i]);
  return out;
}

// The bits of one channel in a pixel.
struct Field {
  int shift = 0;
  uint32_t max_value = 0;  // largest value

  static Field of(uint32_t mask, const std::string& name) {
    if (mask == 0) return {};  // a missing channel is 0
    const int shift = std::countr_zero(mask);
    const uint32_t max_value = mask >> shift;
    check<FileError>(std::has_single_bit(uint64_t{max_value} + 1), name, ": found a BMP image with the colour mask ", mask,
                     ", expected bits without gaps");
    return {shift, max_value};
  }
  uint8_t operator()(uint32_t pixel) const {
    return max_value == 0 ? uint8_t{0} : static_cast<uint8_t>(uint64_t{pixel >> shift & max_value} * 255 / max_value);
  }
};

struct Header {
  size_t pixels_at = 0, size = 0;  // offset of the pixels; size of the image header
  int64_t width = 0, height = 0;
  bool top_down = false;
  size_t bits = 0;
  uint32_t compression = kRaw;
  size_t colours = 0, colour_bytes = 4;  // of the palette

  size_t end() const { return kFileHeader + size; }
  size_t row() const { return static_cast<size_t>((width * static_cast<int64_t>(bits) + 31) / 32 * 4); }  // bytes, padded to 4
};

Header header_of(Bytes file, const std::string& name) {
  check<FileError>(file.size() >= kFileHeader + 12, name, ": found ", file.size(), " bytes, expected a BMP header of ", kFileHeader + 12);
  Header out{.pixels_at = number(file, 10, 4), .size = number(file, 14, 4)};
  const bool old = out.size == 12;  // OS/2 1.x
  bool known = false;
  for (const size_t size : {12, 40, 52, 56, 64, 108, 124}) known = known || out.size == size;
  check<FileError>(known, name, ": found a BMP header of ", out.size, " bytes, expected 12, 40, 52, 56, 64, 108 or 124");
  check<FileError>(file.size() >= out.end(), name, ": the BMP header is cut short");
  if (old) {
    out.width = number(file, 18, 2);
    out.height = number(file, 20, 2);
    out.bits = number(file, 24, 2);
    out.colour_bytes = 3;
  } else {
    out.width = static_cast<int32_t>(number(file, 18, 4));
    const auto height = int64_t{static_cast<int32_t>(number(file, 22, 4))};
    out.top_down = height < 0;
    out.height = out.top_down ? -height : height;
    out.bits = number(file, 28, 2);
    out.compression = number(file, 30, 4);
    out.colours = number(file, 46, 4);
  }
  check<FileError>(out.width > 0 && out.height > 0, name, ": found a BMP image of ", out.width, " x ", out.height,
                   " pixels, expected at least 1 x 1");
  const bool palette = out.bits == 1 || out.bits == 4 || out.bits == 8, colour = out.bits == 16 || out.bits == 24 || out.bits == 32;
  check<FileError>(palette || colour, name, ": found a BMP image with ", out.bits, " bits per pixel, expected 1, 4, 8, 16, 24 or 32");
  const bool masks = out.compression == kBitfields || out.compression == kAlphaBitfields;
  check<FileError>(out.compression == kRaw || (masks && (out.bits == 16 || out.bits == 32)), name, ": found a BMP image with compression ",
                   out.compression, " and ", out.bits, " bits per pixel, expected an uncompressed one; save it as PNG");
  const size_t max_colours = size_t{1} << std::min<size_t>(out.bits, 8);
  if (palette && (out.colours == 0 || out.colours > max_colours)) out.colours = max_colours;
  return out;
}

std::array<Field, 3> fields_of(Bytes file, const Header& header, const std::string& name) {
  std::array<uint32_t, 3> masks{0xff0000, 0xff00, 0xff};
  if (header.bits == 16) masks = {0x7c00, 0x3e0, 0x1f};
  if (header.compression != kRaw) {
    check<FileError>(file.size() >= kFileHeader + 52, name, ": the colour masks of the BMP image are cut short");
    for (size_t c = 0; c < 3; ++c) masks[c] = number(file, kFileHeader + 40 + 4 * c, 4);
  }
  std::array<Field, 3> out;
  for (size_t c = 0; c < 3; ++c) out[c] = Field::of(masks[c], name);
  return out;
}

// Always 256 colours; missing ones are black.
std::vector<std::array<uint8_t, 3>> palette_of(Bytes file, const Header& header, const std::string& name) {
  check<FileError>((file.size() - header.end()) / header.colour_bytes >= header.colours, name,
                   ": the palette of the BMP image is cut short");
  std::vector<std::array<uint8_t, 3>> out(256);
  for (size_t i = 0; i < header.colours; ++i)
    for (size_t c = 0; c < 3; ++c) out[i][c] = std::to_integer<uint8_t>(file[header.end() + i * header.colour_bytes + 2 - c]);
  return out;
}

}  // namespace

bool is_bmp(Bytes file) { return file.size() >= 18 && std::memcmp(file.data(), "BM", 2) == 0; }

ImageSize bmp_size(Bytes file, const std::string& name) {
  const Header header = header_of(file, name);
  return {header.width, header.height};
}

Image parse_bmp(Bytes file, const std::string& name, int64_t max_pixels) {
  const Header header = header_of(file, name);
  Image out = blank_image(name, header.width, header.height, max_pixels, static_cast<int64_t>(file.size()) * 8);
  const size_t row = header.row(), bytes = header.bits / 8;
  check<FileError>(header.pixels_at >= header.end() && header.pixels_at <= file.size() &&
                       (file.size() - header.pixels_at) / row >= static_cast<size_t>(header.height),
                   name, ": the BMP image cannot be decoded: the file is cut short");
  const auto palette = header.bits <= 8 ? palette_of(file, header, name) : std::vector<std::array<uint8_t, 3>>();
  const auto fields = header.bits > 8 && header.bits != 24 ? fields_of(file, header, name) : std::array<Field, 3>();
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < header.height; ++y) {
    const size_t line = header.pixels_at + row * static_cast<size_t>(header.top_down ? y : header.height - 1 - y);
    for (size_t x = 0; x < static_cast<size_t>(header.width); ++x, to += 3) {
      if (header.bits <= 8) {
        const size_t bit = x * header.bits, shift = 8 - header.bits - bit % 8;
        const size_t index = number(file, line + bit / 8, 1) >> shift & ((1U << header.bits) - 1);
        std::memcpy(to, palette[index].data(), 3);
      } else if (header.bits == 24) {
        for (size_t c = 0; c < 3; ++c) to[c] = std::to_integer<uint8_t>(file[line + 3 * x + 2 - c]);
      } else {
        const uint32_t pixel = number(file, line + bytes * x, bytes);
        for (size_t c = 0; c < 3; ++c) to[c] = fields[c](pixel);
      }
    }
  }
  return out;
}

}  // namespace heed::detail
