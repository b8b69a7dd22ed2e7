// Decodes all image files once before training, and reports all unreadable ones.
#pragma once

#include "heed/core/api.h"
#include "heed/data/image_data.h"

namespace HEED_API heed {

struct DecodeOptions {
  std::function<Image(const Image& image)> prepare = {};  // applied to each image, e.g. resizing; the result is kept
  int64_t max_bytes = 0;                                  // memory limit; data that needs more is decoded on every access
  std::function<void(int64_t more)> done = {};            // progress: number of images since the last call; called in one thread
};

struct DecodedImages {
  ImageData data;                     // the readable images, after `prepare`
  std::vector<std::string> bad = {};  // "FILE: reason" for each unreadable one, in data order
  std::vector<ImageSize> sizes = {};  // of the images in `data`, before `prepare`
  int64_t bytes = 0;                  // in memory; 0: decoded on every access
};

// Data that is not image files is only prepared, on every access.
DecodedImages decode_images(ImageData data, const DecodeOptions& options);

}  // namespace heed
