// Exif orientation, tag 0x0112 (CIPA DC-008, section 4.6.5). Metadata is often damaged by editing programs: anything invalid counts as
// "as stored".
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "heed/io/image_formats.h"

namespace heed::detail {
namespace {

constexpr uint64_t kOrientationTag = 0x0112;

// Integers in a block of bytes; nullopt past its end.
struct Numbers {
  Bytes bytes;
  bool big_endian;

  std::optional<uint64_t> at(size_t offset, size_t size) const {
    if (offset > bytes.size() || bytes.size() - offset < size) return {};
    uint64_t out = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t from = big_endian ? i : size - 1 - i;
      out = out << 8 | std::to_integer<uint64_t>(bytes[offset + from]);
    }
    return out;
  }
};

bool has_at(Bytes bytes, size_t offset, std::string_view text) {
  return offset <= bytes.size() && bytes.size() - offset >= text.size() &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

constexpr std::string_view kExif("Exif\0\0", 6);

struct Metadata {
  Bytes exif = {}, xmp = {};
};

// An Exif block: a TIFF header, then 12-byte tags. 0: no orientation.
int orientation_in_exif(Bytes block) {
  while (has_at(block, 0, kExif)) block = block.subspan(kExif.size());
  const bool big = has_at(block, 0, std::string_view("MM\0*", 4));
  if (!big && !has_at(block, 0, std::string_view("II*\0", 4))) return 0;
  const Numbers numbers{block, big};
  const std::optional<uint64_t> list = numbers.at(4, 4);
  const std::optional<uint64_t> count = list ? numbers.at(*list, 2) : std::nullopt;
  int out = 0;
  for (uint64_t i = 0; i < count.value_or(0); ++i) {
    const size_t entry = *list + 2 + 12 * i;
    const auto tag = numbers.at(entry, 2), type = numbers.at(entry + 2, 2), values = numbers.at(entry + 4, 4);
    if (!values) break;
    if (*tag != kOrientationTag || *values != 1) continue;
    const size_t size = *type == 1 ? 1 : *type == 3 ? 2 : *type == 4 ? 4 : 0;  // BYTE, SHORT, LONG
    const auto value = size > 0 ? numbers.at(entry + 8, size) : std::nullopt;
    out = value && *value <= 8 ? static_cast<int>(*value) : 1;
  }
  return out;
}

// XMP is XML, with the value in an attribute or an element. 0: no orientation.
int orientation_in_xmp(Bytes block) {
  const std::string_view text(reinterpret_cast<const char*>(block.data()), block.size()), key = "tiff:Orientation";
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    std::string_view rest = text.substr(at + key.size());
    const size_t sign = rest.starts_with("=\"") ? 2 : rest.starts_with(">") ? 1 : 0;
    if (sign > 0 && rest.size() > sign && rest[sign] >= '0' && rest[sign] <= '9') return rest[sign] - '0';
  }
  return 0;
}

// Scans the segments before the compressed data.
Metadata metadata_in_jpeg(Bytes file) {
  constexpr std::string_view xmp("http://ns.adobe.com/xap/1.0/\0", 29);
  const Numbers numbers{file, true};
  Metadata out;
  for (size_t at = 2; has_at(file, at, "\xff");) {
    const auto marker = numbers.at(at + 1, 1);
    if (marker == 0xff) {  // fill byte
      ++at;
      continue;
    }
    const auto length = numbers.at(at + 2, 2);
    if (!length || *length < 2 || marker == 0xda || marker == 0xd9) break;
    const Bytes segment = file.subspan(at + 4, std::min<size_t>(*length - 2, file.size() - at - 4));
    if (marker == 0xe1 && out.exif.empty() && has_at(segment, 0, kExif)) out.exif = segment;
    if (marker == 0xe1 && out.xmp.empty() && has_at(segment, 0, xmp)) out.xmp = segment;
    at += 2 + *length;
  }
  return out;
}

Metadata metadata_in_png(Bytes file) {
  constexpr std::string_view xmp("XML:com.adobe.xmp\0\0", 19);  // uncompressed
  const Numbers numbers{file, true};
  Metadata out;
  size_t at = 8;
  for (auto length = numbers.at(at, 4); length && numbers.at(at + 4, 4); length = numbers.at(at, 4)) {
    if (*length > file.size() - at - 8) break;
    const Bytes data = file.subspan(at + 8, *length);
    if (has_at(file, at + 4, "eXIf")) out.exif = data;
    if (has_at(file, at + 4, "iTXt") && has_at(data, 0, xmp)) out.xmp = data;
    at += 12 + *length;
  }
  return out;
}

Metadata metadata_in_webp(Bytes file) {
  const Numbers numbers{file, false};
  Metadata out;
  size_t at = 12;
  for (auto length = numbers.at(at + 4, 4); length; length = numbers.at(at + 4, 4)) {
    if (*length > file.size() - at - 8) break;
    const Bytes data = file.subspan(at + 8, *length);
    if (has_at(file, at, "EXIF")) out.exif = data;
    if (has_at(file, at, "XMP ")) out.xmp = data;
    at += 8 + *length + *length % 2;
  }
  return out;
}

}  // namespace

int orientation_of(Bytes file) {
  const Metadata found = is_jpeg(file)   ? metadata_in_jpeg(file)
                         : is_png(file)  ? metadata_in_png(file)
                         : is_webp(file) ? metadata_in_webp(file)
                                         : Metadata();
  int out = orientation_in_exif(found.exif);
  if (out == 0) out = orientation_in_xmp(found.xmp);
  return out >= 1 && out <= 8 ? out : 1;
}

Image oriented(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const int64_t W = image.width, H = image.height;
  const bool swaps = orientation >= 5;  // swaps width and height
  Image out{swaps ? H : W, swaps ? W : H};
  out.pixels.resize(image.pixels.size());
  // The stored position of output pixel (0, 0), and the stored offsets of a step right and down.
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const int64_t x_step = from_right ? -1 : 1, y_step = from_below ? -W : W;
  const int64_t right = swaps ? y_step : x_step, down = swaps ? x_step : y_step;
  const uint8_t* const first = image.pixels.data() + 3 * ((from_right ? W - 1 : 0) + (from_below ? (H - 1) * W : 0));
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x, to += 3) std::memcpy(to, first + 3 * (y * down + x * right), 3);
  return out;
}

}  // namespace heed::detail
