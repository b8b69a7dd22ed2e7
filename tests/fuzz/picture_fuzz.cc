// Any bytes as a picture: refused, or a picture of the size it tells, which can be resized, written and read again.
#include <cstdlib>

#include "heed/io/resize.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  constexpr int64_t most = 1 << 18;
  try {
    const Picture picture = parse_picture(std::as_bytes(std::span(data, size)), "input", most);
    if (picture.width * picture.height > most || std::ssize(picture.pixels) != picture.width * picture.height * 3) std::abort();
    const PictureSize told = parse_picture_size(std::as_bytes(std::span(data, size)), "input");
    if (told != PictureSize{picture.width, picture.height}) std::abort();
    const Picture small = center_crop(resize(picture, 5, 3, static_cast<Resample>(size % 6)), 4, 4);
    const std::string bytes = png_bytes(small);
    if (parse_picture(std::as_bytes(std::span(bytes)), "output").pixels != small.pixels) std::abort();
  } catch (const FileError&) {
  }
}
