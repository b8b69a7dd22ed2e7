#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "heed/train/append_only_file.h"
#include "heed/train/run_folder.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_with(const Path& folder, const char* what, const std::error_code& error) {
  fail<WriteError>(folder.string(), ": ", what, " (", error.message(), "); the previous content is unchanged");
}
std::error_code last_error() { return {errno, std::generic_category()}; }

void sync_tree(const Path& folder, const Path& target) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) sync_folder(entry.path());
    if (!entry.is_regular_file()) continue;
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    const bool good = file >= 0 && ::fsync(file) == 0;
    const std::error_code error = last_error();
    if (file >= 0) ::close(file);
    if (!good) fail_with(target, "a file in it cannot be synced to disk", error);
  }
  sync_folder(folder);
}

// Renames `fresh` to `folder`; the old folder, if any, ends up as `away` or as `fresh`.
void put_in_place(const Path& fresh, const Path& folder, const Path& away) {
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) return;
  // No old folder, or no RENAME_EXCHANGE in this file system: two renames leave a moment without a folder, which the next call repairs.
  const bool replaces = fs::exists(fs::symlink_status(folder));
  if (replaces && ::rename(folder.c_str(), away.c_str()) != 0) fail_with(folder, "cannot be moved away", last_error());
  if (::rename(fresh.c_str(), folder.c_str()) == 0) return;
  const std::error_code error = last_error();
  if (replaces) (void)::rename(away.c_str(), folder.c_str());
  fail_with(folder, "cannot be put in place", error);
}

}  // namespace

void replace_folder(const Path& folder, const std::function<void(const Path& temporary)>& write) {
  const Path target = folder.has_filename() ? folder : folder.parent_path();  // "best/" is "best"
  const Path parent = target.has_parent_path() ? target.parent_path() : Path(".");
  const std::string name = target.filename();
  const Path fresh = parent / ("." + name + ".heed-new"), away = parent / ("." + name + ".heed-old");
  try {
    check<FileError>(!fs::exists(target) || fs::is_directory(target), target.string(), ": found a file, expected a folder or nothing");
    // Left over from calls that were killed.
    if (fs::exists(away) && !fs::exists(target)) fs::rename(away, target);
    fs::remove_all(away);
    fs::remove_all(fresh);
    if (::mkdir(fresh.c_str(), 0777) != 0) fail_with(target, "cannot create a temporary folder next to it", last_error());
    try {
      write(fresh);
      sync_tree(fresh, target);
      put_in_place(fresh, target, away);
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(fresh, ignored);
      throw;
    }
    sync_folder(parent);
    fs::remove_all(away);
    fs::remove_all(fresh);
  } catch (const fs::filesystem_error& error) {
    fail_with(target, "cannot be replaced", error.code());
  }
}

}  // namespace heed
