// Image files in folders: which of them heed reads, and which are passed over.
#pragma once

#include <string>
#include <vector>

#include "heed/io/file.h"

namespace heed {

inline constexpr const char* kReadFormats = "PNG, JPEG, WebP or BMP";  // for messages

// By its extension, in any case: .png, .jpg, .jpeg, .webp or .bmp.
bool is_image_name(const Path& path);

struct FolderImages {
  std::vector<Path> images = {};       // by name
  std::vector<Path> passed_over = {};  // files with other extensions, by name
};
// Everything below a folder. Hidden files (.DS_Store and the like) are left out.
FolderImages find_images(const Path& folder);

// "3 files were passed over: a.heic, b.gif, notes.txt (heed reads PNG, JPEG, WebP or BMP)"; empty where there are none.
std::string passed_over_note(const std::vector<Path>& files);

}  // namespace heed
