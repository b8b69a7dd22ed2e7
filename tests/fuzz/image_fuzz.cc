// Any bytes as an image: refused, or an image of the size in its header, which can be resized, written and read again.
#include <cstdlib>

#include "heed/io/resize.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  constexpr int64_t max_pixels = 1 << 18;
  try {
    const Image image = parse_image(std::as_bytes(std::span(data, size)), "input", max_pixels);
    if (image.width * image.height > max_pixels || std::ssize(image.pixels) != image.width * image.height * 3) std::abort();
    const ImageSize size_in_header = parse_image_size(std::as_bytes(std::span(data, size)), "input");
    if (size_in_header != ImageSize{image.width, image.height}) std::abort();
    const Image small = center_crop(resize(image, 5, 3, static_cast<Resample>(size % 6)), 4, 4);
    const std::string bytes = png_bytes(small);
    if (parse_image(std::as_bytes(std::span(bytes)), "output").pixels != small.pixels) std::abort();
  } catch (const FileError&) {
  }
}
