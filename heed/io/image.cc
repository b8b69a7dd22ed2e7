#include "heed/io/image.h"

#include <algorithm>
#include <array>

#include "heed/io/image_files.h"
#include "heed/io/image_formats.h"
#include "heed/io/printable.h"

namespace heed {
namespace {

using detail::Bytes;

struct Format {
  bool (*is)(Bytes file);
  ImageSize (*size)(Bytes file, const std::string& name);
  Image (*parse)(Bytes file, const std::string& name, int64_t max_pixels);
};

constexpr std::array kFormats{
    Format{detail::is_png, detail::png_size, detail::parse_png},
    Format{detail::is_jpeg, detail::jpeg_size, detail::parse_jpeg},
    Format{detail::is_webp, detail::webp_size, detail::parse_webp},
    Format{detail::is_bmp, detail::bmp_size, detail::parse_bmp},
};

// Common image formats that heed does not read, by their first bytes.
std::string other_format(std::string_view start) {
  struct Known {
    std::string_view bytes, name;
    size_t at = 0;
  };
  using namespace std::string_view_literals;
  constexpr std::array known{
      Known{"GIF8", "GIF"},
      Known{"II*\0"sv, "TIFF"},
      Known{"MM\0*"sv, "TIFF"},
      Known{"ftypavif", "AVIF", 4},
      Known{"ftypavis", "AVIF", 4},
      Known{"ftyphei", "HEIC", 4},
      Known{"ftyphev", "HEIC", 4},
      Known{"ftypmif1", "HEIC or AVIF", 4},
      Known{"ftypmsf1", "HEIC or AVIF", 4},
      Known{"\0\0\0\x0cJXL "sv, "JPEG XL"},
      Known{"\xff\x0a", "JPEG XL"},
      Known{"\0\0\0\x0cjP  "sv, "JPEG 2000"},
      Known{"8BPS", "Photoshop"},
      Known{"<svg", "SVG"},
      Known{"%PDF", "PDF"},
  };
  for (const Known& each : known)
    if (start.size() > each.at && start.substr(each.at).starts_with(each.bytes)) return std::string(each.name);
  return "";
}

const Format& format_of(Bytes file, const std::string& name) {
  check<FileError>(!file.empty(), name, ": found an empty file, expected a ", kReadFormats, " image");
  for (const Format& format : kFormats)
    if (format.is(file)) return format;
  const std::string_view start(reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 12));
  const std::string other = other_format(start);
  fail<FileError>(name, ": found ", other.empty() ? in_quotes(start) + " at the start" : "a " + other + " file", ", expected a ",
                  kReadFormats, " image; convert it first");
}

}  // namespace

Image detail::blank_image(const std::string& name, int64_t width, int64_t height, int64_t max_pixels, int64_t max_in_file) {
  check<FileError>(width > 0 && height > 0, name, ": found an image of ", width, " x ", height, " pixels, expected at least 1 x 1");
  check<FileError>(width <= max_pixels / height, name, ": found an image of ", width, " x ", height, " pixels, expected at most ",
                   max_pixels, " of them");
  check<FileError>(width * height <= max_in_file, name, ": found an image of ", width, " x ", height,
                   " pixels, more than a file of its size can hold: it is damaged or cut short");
  Image out{width, height};
  out.pixels.resize(static_cast<size_t>(width * height * 3));
  return out;
}

Image parse_image(std::span<const std::byte> file, const std::string& name, int64_t max_pixels) {
  return detail::oriented(format_of(file, name).parse(file, name, max_pixels), detail::orientation_of(file));
}

ImageSize parse_image_size(std::span<const std::byte> file, const std::string& name) {
  const auto [width, height] = format_of(file, name).size(file, name);
  return detail::orientation_of(file) >= 5 ? ImageSize{height, width} : ImageSize{width, height};
}

Image read_image(const Path& path, int64_t max_pixels) {
  const auto file = MappedFile::open(path);
  return parse_image({file->data(), static_cast<size_t>(file->size())}, printable(path.string()), max_pixels);
}

ImageSize read_image_size(const Path& path) {
  const auto file = MappedFile::open(path);
  return parse_image_size({file->data(), static_cast<size_t>(file->size())}, printable(path.string()));
}

void write_png(const Path& path, const Image& image) { write_text(path, png_bytes(image)); }

}  // namespace heed
