// Image decoders: private to image.cc, orientation.cc and one file per format (png.cc, jpeg.cc, webp.cc, bmp.cc).
#pragma once

#include "heed/io/image.h"

namespace heed::detail {

using Bytes = std::span<const std::byte>;

bool is_png(Bytes file);
bool is_jpeg(Bytes file);
bool is_webp(Bytes file);
bool is_bmp(Bytes file);

// Size in the header, before rotation. An invalid header is a FileError.
ImageSize png_size(Bytes file, const std::string& name);
ImageSize jpeg_size(Bytes file, const std::string& name);
ImageSize webp_size(Bytes file, const std::string& name);
ImageSize bmp_size(Bytes file, const std::string& name);

// The pixels as stored, before rotation.
Image parse_png(Bytes file, const std::string& name, int64_t max_pixels);
Image parse_jpeg(Bytes file, const std::string& name, int64_t max_pixels);
Image parse_webp(Bytes file, const std::string& name, int64_t max_pixels);
Image parse_bmp(Bytes file, const std::string& name, int64_t max_pixels);

// The orientation of a file, 1 to 8, from its Exif block (JPEG APP1 segment, PNG eXIf chunk, WebP EXIF chunk), otherwise from its XMP. 1
// (as stored) if there is none or the metadata is damaged.
int orientation_of(Bytes file);
// The image as it should be displayed, as PIL.ImageOps.exif_transpose.
Image oriented(Image image, int orientation);

// An allocated image. `max_in_file`: upper bound of the pixels that the file's bytes can encode.
Image blank_image(const std::string& name, int64_t width, int64_t height, int64_t max_pixels, int64_t max_in_file);

}  // namespace heed::detail
