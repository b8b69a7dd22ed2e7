#include "heed/serve/request_image.h"

#include "heed/io/markup.h"

namespace heed::serve {
namespace {

constexpr int64_t kMostRequestPixels = int64_t{1} << 25;

}  // namespace

Image image_in(const JsonReader& text) {
  std::string data = text.text();
  if (data.starts_with("data:")) {
    const size_t comma = data.find(";base64,");
    if (comma == std::string::npos) text.expected("a data: URL in base64");
    data.erase(0, comma + 8);
  }
  const std::optional<std::vector<std::byte>> bytes = from_base64(data);
  if (!bytes) text.expected("an image in base64");
  return parse_image(*bytes, text.place(), kMostRequestPixels);
}

std::string image_data_url(const Image& image) {
  const std::string png = png_bytes(image);
  return "data:image/png;base64," + base64(std::as_bytes(std::span(png)));
}

}  // namespace heed::serve
