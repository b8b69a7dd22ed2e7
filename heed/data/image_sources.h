// Readers of the supported formats: private to image_data.cc, captions.cc, cifar.cc, idx_images.cc and class_folders.cc.
#pragma once

#include "heed/data/image_data.h"

namespace heed::detail {

// A part of synthetic images, "NAME" or "NAME:COUNT", the number of training images: validation and test have a fifth of that and other
// seeds.
struct SyntheticPart {
  int64_t count;
  uint64_t seed;
};
SyntheticPart synthetic_part(const std::string& where, DataPart part, int64_t default_count);
// Options: of shapes or scenes
template <class Options>
Options synthetic_options(const std::string& where, DataPart part) {
  Options out;
  const auto [count, seed] = synthetic_part(where, part, out.count);
  out.count = count;
  out.seed = seed;
  return out;
}

bool is_cifar(const Path& folder);
ImageData read_cifar(const Path& folder, DataPart part);
bool is_idx(const Path& folder);
ImageData read_idx_images(const Path& folder, DataPart part);
ImageData read_class_folders(const Path& folder, DataPart part);

// A file with one name per line; `count`: the expected number, 0: any
std::vector<std::string> read_names(const Path& path, int64_t count);
std::vector<std::string> numbered_names(int64_t count);  // "0", "1", ...

}  // namespace heed::detail
