// Image files decoded once, before a model learns from them. All that cannot be read are found in one go.
#pragma once

#include "heed/data/picture_data.h"

namespace heed {

struct DecodeOptions {
  std::function<Picture(const Picture& picture)> prepare = {};  // what is kept of an image: it resized, for example
  int64_t most_bytes = 0;                                       // to keep in memory; what needs more is decoded anew each time
  std::function<void(int64_t more)> done = {};                  // how many more were decoded; called in one thread
};

struct Decoded {
  PictureData data;                     // the images that can be read, each as `prepare` gives it
  std::vector<std::string> bad = {};    // "FILE: reason" of each of the others, in the order of the data
  std::vector<PictureSize> sizes = {};  // of the images in `data`, before `prepare`
  int64_t bytes = 0;                    // of them in memory; 0: they are decoded anew each time
};

// Data that are no image files are taken as they are, and prepared when they are asked for.
Decoded decode_all(PictureData data, const DecodeOptions& options);

}  // namespace heed
