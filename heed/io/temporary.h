// Temporary folders, and cleanup of temporary files at exit.
#pragma once

#include "heed/core/api.h"
#include "heed/io/file.h"

namespace HEED_API heed {

// A new empty folder below TMPDIR (default /tmp), removed with its contents by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const Path& path() const { return path_; }

 private:
  Path path_;
};

// Removes all temporary folders, for a program that ends without running destructors. Files that other threads write there are lost.
void remove_temporary_folders();

// Removes the temporary files of all FileWriters, for a program that ends without running destructors. Does not allocate.
void unlink_temporaries() noexcept;

}  // namespace heed
