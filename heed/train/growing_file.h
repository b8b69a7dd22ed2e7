// A file that grows by whole lines or records while a run lasts: what cannot be added in full is not added at all.
#pragma once

#include <string>
#include <string_view>

#include "heed/io/file.h"

namespace heed {

class GrowingFile {
 public:
  explicit GrowingFile(Path path);  // goes on with what lies there
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  const Path& path() const { return path_; }
  int64_t size() const;
  void append(std::string_view bytes);  // a full disk is a WriteError, and the file is as it was
  void sync();                          // everything is on the disk
  void cut_to(int64_t bytes);           // never makes the file longer
  std::string first_line() const;       // without its end
  void cut_half_line();                 // what a power cut left behind the last line's end

 private:
  [[noreturn]] void give_up(const char* what, int error) const;

  Path path_;
  int descriptor_ = -1;
};

void sync_folder(const Path& folder);  // the names in it are on the disk, where the file system can do that

}  // namespace heed
