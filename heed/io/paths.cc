#include "heed/io/paths.h"

#include <algorithm>
#include <system_error>

namespace heed {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_reading(const Path& path, const std::error_code& error) {
  check(!is_system_failure(error), path.string(), ": cannot be examined (", error.message(), ")");
  fail<FileError>(path.string(), ": cannot be examined (", error.message(), "); check the path and its permissions");
}
[[noreturn]] void refuse_writing(const Path& path, const char* what, const std::error_code& error) {
  fail<WriteError>(path.string(), ": cannot be ", what, " (", error.message(),
                   "); check the path, its permissions and the space on the disk");
}

fs::file_status status_of(const Path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error == std::errc::filename_too_long) return fs::file_status(fs::file_type::not_found);  // no such file can exist
  if (status.type() == fs::file_type::none) refuse_reading(path, error);                        // none: status could not be determined
  return status;
}

bool is_of_writing(const std::error_code& error) {
  return error == std::errc::no_space_on_device || error == std::errc::read_only_file_system || error == std::errc::file_too_large ||
         error == std::errc::directory_not_empty || error == std::errc::file_exists;
}

}  // namespace

bool is_system_failure(const std::error_code& error) {
  return error == std::errc::io_error || error == std::errc::not_enough_memory || error == std::errc::too_many_files_open ||
         error == std::errc::too_many_files_open_in_system;
}

bool path_exists(const Path& path) { return fs::exists(status_of(path)); }
bool is_folder(const Path& path) { return fs::is_directory(status_of(path)); }
bool is_plain_file(const Path& path) { return fs::is_regular_file(status_of(path)); }

std::vector<Path> folder_entries(const Path& folder) {
  std::vector<Path> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) out.push_back(entry->path());
  if (error) refuse_reading(folder, error);
  std::sort(out.begin(), out.end());
  return out;
}

int64_t file_bytes(const Path& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) refuse_reading(path, error);
  return static_cast<int64_t>(bytes);
}

bool same_path(const Path& a, const Path& b) {
  std::error_code error;
  return path_exists(a) && path_exists(b) && fs::equivalent(a, b, error) && !error;
}

void make_folders(const Path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) refuse_writing(path, "created", error);
}

void remove_path(const Path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) refuse_writing(path, "removed", error);
}

void refuse_path(const fs::filesystem_error& error) {
  if (is_of_writing(error.code())) refuse_writing(error.path1(), "written", error.code());
  refuse_reading(error.path1(), error.code());
}

}  // namespace heed
