// Images in memory, read from PNG, JPEG, WebP and BMP files, and written as PNG. Errors are FileErrors that name the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/file.h"
#include "heed/io/grey.h"

namespace HEED_API heed {

// An image of 8-bit colours in memory.
struct Image {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels = {};  // (height, width, 3): red, green, blue
};

// In pixels.
struct ImageSize {
  int64_t width = 0, height = 0;
  bool operator==(const ImageSize&) const = default;
};

// Larger images are refused before allocation, because a few bytes can claim any size. Pillow's limit.
inline constexpr int64_t kMaxImagePixels = 178'956'970;

// A PNG, JPEG, WebP or BMP file, detected by its first bytes. As transformers.image_utils.load_image: the Exif orientation is applied,
// colours are those of Pillow's convert("RGB"): grey is replicated, alpha dropped, 16 bits reduced to the upper 8.
Image read_image(const Path& path, int64_t max_pixels = kMaxImagePixels);
Image parse_image(std::span<const std::byte> file, const std::string& name,
                  int64_t max_pixels = kMaxImagePixels);  // name: for error messages
// The size that read_image would return, from the header only: the pixels may still be damaged.
ImageSize read_image_size(const Path& path);
ImageSize parse_image_size(std::span<const std::byte> file, const std::string& name);

// The image as a PNG file.
std::string png_bytes(const Image& image);
void write_png(const Path& path, const Image& image);  // atomically

}  // namespace heed
