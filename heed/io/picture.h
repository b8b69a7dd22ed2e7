// Pictures in memory, and as PNG and JPEG files. Every problem with a file is a FileError that names it.
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

// Larger pictures are refused before any memory is taken for them: a few bytes can claim any size. Pillow's limit.
inline constexpr int64_t kMostPixels = 178'956'970;

// A PNG or a JPEG file; its first bytes tell. Colours come out as Pillow's convert("RGB") gives them: grey is three times the
// same, transparency is dropped, of 16 bits the upper 8 stay. A note about orientation is not followed.
Picture read_picture(const Path& path, int64_t most_pixels = kMostPixels);
Picture parse_picture(std::span<const std::byte> file, const std::string& name, int64_t most_pixels = kMostPixels);  // name: for messages

std::string png_bytes(const Picture& picture);
void write_png(const Path& path, const Picture& picture);  // whole or not at all

}  // namespace heed
