// Wrappers of std::filesystem that report problems (link loops, missing permissions, ...) as FileErrors with path and reason.
#pragma once

#include <system_error>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/file.h"

namespace HEED_API heed {

// Errors of the disk or of memory rather than of the file; a retry may succeed.
bool is_system_failure(const std::error_code& error);

bool path_exists(const Path& path);
bool is_folder(const Path& path);
bool is_plain_file(const Path& path);
std::vector<Path> folder_entries(const Path& folder);  // sorted, not recursive
int64_t file_bytes(const Path& path);
bool same_path(const Path& a, const Path& b);  // both exist and are the same file

void make_folders(const Path& path);  // with parents
void remove_path(const Path& path);   // a file or an empty folder, if it exists

// Converts an uncaught std::filesystem error.
[[noreturn]] void refuse_path(const std::filesystem::filesystem_error& error);

}  // namespace heed
