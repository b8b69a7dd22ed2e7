// Image files in folders: which of them heed reads, and which are passed over. File names may hold any bytes; what is printed does not.
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

// A list for messages: each of the first 20 on a line of its own, then how many more there are.
std::string listed_lines(const std::vector<std::string>& lines);

// Text as a message may show it: UTF-8 as it is; control characters and bytes that are no UTF-8 as \xNN.
std::string printable(std::string_view text);

}  // namespace heed
