#include "heed/io/temporary.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <set>
#include <system_error>

#include "heed/core/check.h"

namespace heed {
namespace {

std::mutex temporary_mutex;
std::set<Path>& temporary_folders() {
  static std::set<Path> folders;
  return folders;
}

Path temporary_parent() {
  const char* set = std::getenv("TMPDIR");
  return set == nullptr || *set == '\0' ? Path("/tmp") : Path(set);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  const Path parent = temporary_parent();
  std::string name = (parent / "heed-XXXXXX").string();
  const std::lock_guard lock(temporary_mutex);
  const bool created = mkdtemp(name.data()) != nullptr;
  check(created, parent.string(), ": cannot create a temporary folder there (", std::generic_category().message(errno),
        "); set TMPDIR to a folder that can be written");
  try {
    path_ = name;
    temporary_folders().insert(path_);
  } catch (...) {
    ::rmdir(name.c_str());
    throw;
  }
}

TemporaryFolder::~TemporaryFolder() {
  const std::lock_guard lock(temporary_mutex);
  remove_quietly(path_);
  temporary_folders().erase(path_);
}

void remove_temporary_folders() {
  const std::lock_guard lock(temporary_mutex);
  for (const Path& folder : temporary_folders())
    for (int tries = 0; tries < 100 && std::filesystem::exists(folder); ++tries) {  // another thread may still be writing
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
}

}  // namespace heed
