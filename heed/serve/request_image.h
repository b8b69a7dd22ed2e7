// Images in requests: base64, or a data: URL.
#pragma once

#include "heed/io/image.h"
#include "heed/io/json_reader.h"

namespace heed::serve {

Image image_in(const JsonReader& text);          // a FileError if it is not an image
std::string image_data_url(const Image& image);  // of a PNG

}  // namespace heed::serve
