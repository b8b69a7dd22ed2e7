// Folders for files that nobody needs afterwards, and what is left of files that were being written.
#pragma once

#include "heed/io/file.h"

namespace heed {

// A new empty folder below TMPDIR (/tmp where that is not set). It is removed with everything in it when this ends.
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

// Removes all of them. For a program that is about to end without destructors: files that other threads write there are lost.
void remove_temporary_folders();

// Removes the temporary files of all FileWriters, for a program that is about to end without destructors. Allocates nothing.
void unlink_temporaries() noexcept;

}  // namespace heed
