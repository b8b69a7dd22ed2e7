// What the formats of pictures share: private to picture.cc, png.cc and jpeg.cc.
#pragma once

#include "heed/io/picture.h"

namespace heed::detail {

bool is_png(std::span<const std::byte> file);
bool is_jpeg(std::span<const std::byte> file);
Picture parse_png(std::span<const std::byte> file, const std::string& name, int64_t most_pixels);
Picture parse_jpeg(std::span<const std::byte> file, const std::string& name, int64_t most_pixels);

// A picture without colours yet. `most_in_file`: how many pixels the file's bytes can hold at best.
Picture blank_picture(const std::string& name, int64_t width, int64_t height, int64_t most_pixels, int64_t most_in_file);

}  // namespace heed::detail
