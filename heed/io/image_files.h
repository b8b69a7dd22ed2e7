// Finds the image files in folders.
#pragma once

#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/file.h"

namespace HEED_API heed {

inline constexpr const char* kReadFormats = "PNG, JPEG, WebP or BMP";  // for error messages

// By extension, ignoring case: .png, .jpg, .jpeg, .webp or .bmp.
bool is_image_name(const Path& path);

// The files of a folder.
struct FolderImages {
  std::vector<Path> images = {};         // by name
  std::vector<Path> skipped_files = {};  // files with other extensions and links to nothing, by name
};
// All files below a folder, also in linked folders, except hidden ones (.DS_Store etc.). A folder that cannot be listed is a FileError.
FolderImages find_images(const Path& folder);

// "3 files were skipped: a.heic, b.gif, notes.txt (heed reads PNG, JPEG, WebP or BMP)"; empty if there are none.
std::string skipped_files_note(const std::vector<Path>& files);

}  // namespace heed
