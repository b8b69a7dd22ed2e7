// WebP with libwebp: lossy and lossless still images. Alpha is dropped.
#include <webp/decode.h>

#include <cstring>
#include <new>

#include "heed/io/image_formats.h"

namespace heed::detail {
namespace {

const uint8_t* data_of(Bytes file) { return reinterpret_cast<const uint8_t*>(file.data()); }

const char* error_text(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "it uses a feature that libwebp does not know";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA: return "the file is cut short";
    default: return "it is damaged";
  }
}

WebPBitstreamFeatures features_of(Bytes file, const std::string& name) {
  WebPBitstreamFeatures out;
  const VP8StatusCode code = WebPGetFeatures(data_of(file), file.size(), &out);
  check<FileError>(code == VP8_STATUS_OK, name, ": the WebP header cannot be read: ", error_text(code));
  check<FileError>(!out.has_animation, name, ": found an animated WebP, expected a still image; convert one of its frames first");
  return out;
}

}  // namespace

bool is_webp(Bytes file) {
  return file.size() >= 12 && std::memcmp(file.data(), "RIFF", 4) == 0 && std::memcmp(file.data() + 8, "WEBP", 4) == 0;
}

ImageSize webp_size(Bytes file, const std::string& name) {
  const WebPBitstreamFeatures features = features_of(file, name);
  return {features.width, features.height};
}

Image parse_webp(Bytes file, const std::string& name, int64_t max_pixels) {
  const auto [width, height] = webp_size(file, name);
  // A uniform image takes a few bytes at any size, so the file size gives no bound.
  Image out = blank_image(name, width, height, max_pixels, max_pixels);
  WebPDecoderConfig config;
  check(WebPInitDecoderConfig(&config) != 0, name, ": libwebp cannot start");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {out.pixels.data(), static_cast<int>(3 * width), out.pixels.size()};
  const VP8StatusCode code = WebPDecode(data_of(file), file.size(), &config);
  if (code == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();  // not the fault of the file
  check<FileError>(code == VP8_STATUS_OK, name, ": the WebP image cannot be decoded: ", error_text(code));
  check<FileError>(config.output.width == width && config.output.height == height, name,
                   ": the WebP image cannot be decoded: its frame is not as large as its header says");
  return out;
}

}  // namespace heed::detail
