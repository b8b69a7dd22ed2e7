#include "heed/io/picture.h"

#include "heed/io/picture_formats.h"

namespace heed {

Picture detail::blank_picture(const std::string& name, int64_t width, int64_t height, int64_t most_pixels, int64_t most_in_file) {
  check<FileError>(width > 0 && height > 0, name, ": found a picture of ", width, " x ", height, " pixels, expected at least 1 x 1");
  check<FileError>(width <= most_pixels / height, name, ": found a picture of ", width, " x ", height, " pixels, expected at most ",
                   most_pixels, " of them");
  check<FileError>(width * height <= most_in_file, name, ": found a picture of ", width, " x ", height,
                   " pixels, more than a file of its size can hold: it is damaged or cut short");
  Picture out{width, height};
  out.pixels.resize(static_cast<size_t>(width * height * 3));
  return out;
}

Picture parse_picture(std::span<const std::byte> file, const std::string& name, int64_t most_pixels) {
  check<FileError>(!file.empty(), name, ": found an empty file, expected a PNG or JPEG picture");
  if (detail::is_png(file)) return detail::parse_png(file, name, most_pixels);
  if (detail::is_jpeg(file)) return detail::parse_jpeg(file, name, most_pixels);
  const std::string_view start(reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 12));
  fail<FileError>(name, ": found ", in_quotes(start), " at the beginning, expected a PNG or JPEG picture; convert it first");
}

Picture read_picture(const Path& path, int64_t most_pixels) {
  const auto file = MappedFile::open(path);
  return parse_picture({file->data(), static_cast<size_t>(file->size())}, path.string(), most_pixels);
}

void write_png(const Path& path, const Picture& picture) { write_text(path, png_bytes(picture)); }

}  // namespace heed
