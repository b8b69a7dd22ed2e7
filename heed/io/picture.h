// Images in memory, read from PNG, JPEG, WebP and BMP files, and written as PNG. Every problem with a file is a FileError that names it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/io/file.h"

namespace heed {

struct Picture {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels = {};  // height rows of width times red, green, blue
};

struct PictureSize {
  int64_t width = 0, height = 0;
  bool operator==(const PictureSize&) const = default;
};

// Larger pictures are refused before any memory is taken for them: a few bytes can claim any size. Pillow's limit.
inline constexpr int64_t kMostPixels = 178'956'970;

// A PNG, JPEG, WebP or BMP file; its first bytes tell which. The Exif orientation is applied, then colours come out as Pillow's
// convert("RGB") gives them, as transformers.image_utils.load_image does: grey is three times the same, transparency is dropped. Of 16
// bits the upper 8 stay.
Picture read_picture(const Path& path, int64_t most_pixels = kMostPixels);
Picture parse_picture(std::span<const std::byte> file, const std::string& name, int64_t most_pixels = kMostPixels);  // name: for messages
// The size that read_picture would give, from the header alone: pixels may still turn out to be damaged.
PictureSize read_picture_size(const Path& path);
PictureSize parse_picture_size(std::span<const std::byte> file, const std::string& name);

std::string png_bytes(const Picture& picture);
void write_png(const Path& path, const Picture& picture);  // whole or not at all

}  // namespace heed
