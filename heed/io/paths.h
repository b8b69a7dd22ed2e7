// Questions about paths and changes of folders, as std::filesystem has them, with errors of ours: a link that leads to itself, a name
// that is too long or a folder without permission is a FileError that names the path and the reason.
#pragma once

#include <system_error>
#include <vector>

#include "heed/io/file.h"

namespace heed {

// Errors that say nothing about the file: the disk or the memory is to blame, and the same file may be read the next time.
bool is_system_failure(const std::error_code& error);

bool path_exists(const Path& path);
bool is_folder(const Path& path);
bool is_plain_file(const Path& path);
std::vector<Path> folder_entries(const Path& folder);  // by name; not of folders below it
int64_t file_bytes(const Path& path);
bool same_path(const Path& a, const Path& b);  // both there, and one

void make_folders(const Path& path);  // with those above it
void remove_path(const Path& path);   // a file or an empty folder, if it is there

// The same for an error of std::filesystem that nobody caught.
[[noreturn]] void refuse_path(const std::filesystem::filesystem_error& error);

}  // namespace heed
