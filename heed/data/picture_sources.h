// The kinds of files that pictures lie in: private to picture_data.cc, cifar.cc, idx_pictures.cc and class_folders.cc.
#pragma once

#include "heed/data/picture_data.h"

namespace heed::detail {

// Whether the folder holds such files, and those of one part.
bool is_cifar(const Path& folder);
PictureData read_cifar(const Path& folder, DataPart part);
bool is_idx(const Path& folder);
PictureData read_idx_pictures(const Path& folder, DataPart part);
PictureData read_class_folders(const Path& folder, DataPart part);

// A file with one name a line; `count`: how many there must be, 0: any number
std::vector<std::string> read_names(const Path& path, int64_t count);
std::vector<std::string> numbered_names(int64_t count);  // "0", "1", ...

}  // namespace heed::detail
