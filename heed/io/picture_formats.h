// What the image formats share: private to picture.cc, orientation.cc and one file per format (png.cc, jpeg.cc, webp.cc, bmp.cc).
#pragma once

#include "heed/io/picture.h"

namespace heed::detail {

using Bytes = std::span<const std::byte>;

bool is_png(Bytes file);
bool is_jpeg(Bytes file);
bool is_webp(Bytes file);
bool is_bmp(Bytes file);

// Width and height as the header has them, before any rotation. A FileError where there is no valid header.
PictureSize png_size(Bytes file, const std::string& name);
PictureSize jpeg_size(Bytes file, const std::string& name);
PictureSize webp_size(Bytes file, const std::string& name);
PictureSize bmp_size(Bytes file, const std::string& name);

// The pixels as they are stored, before any rotation.
Picture parse_png(Bytes file, const std::string& name, int64_t most_pixels);
Picture parse_jpeg(Bytes file, const std::string& name, int64_t most_pixels);
Picture parse_webp(Bytes file, const std::string& name, int64_t most_pixels);
Picture parse_bmp(Bytes file, const std::string& name, int64_t most_pixels);

// The orientation of a file, 1 to 8, from its Exif block (a JPEG's APP1 segment, a PNG's eXIf chunk, a WebP's EXIF chunk) or, where that
// does not say, from its XMP. 1 (as stored) where there is none or where the metadata are damaged.
int orientation_of(Bytes file);
// The image as it should be shown. The same as PIL.ImageOps.exif_transpose.
Picture oriented(Picture picture, int orientation);

// A picture without colours yet. `most_in_file`: how many pixels the file's bytes can hold at best.
Picture blank_picture(const std::string& name, int64_t width, int64_t height, int64_t most_pixels, int64_t most_in_file);

}  // namespace heed::detail
