// An append-only file of lines or records. An append that fails is rolled back.
#pragma once

#include <string>
#include <string_view>

#include "heed/io/file.h"

namespace heed {

class AppendOnlyFile {
 public:
  explicit AppendOnlyFile(Path path);  // appends to an existing file
  ~AppendOnlyFile();
  AppendOnlyFile(const AppendOnlyFile&) = delete;
  AppendOnlyFile& operator=(const AppendOnlyFile&) = delete;

  const Path& path() const { return path_; }
  int64_t size() const;
  void append(std::string_view bytes);  // WriteError if the disk is full; the file is then unchanged
  void sync();                          // fsync
  void truncate_to(int64_t bytes);      // never grows the file
  std::string first_line() const;       // without the newline
  void drop_partial_line();             // removes an incomplete last line, as a crash leaves it

 private:
  [[noreturn]] void fail_with(const char* what, int error) const;

  Path path_;
  int descriptor_ = -1;
};

void sync_folder(const Path& folder);  // fsync of a directory, ignored if unsupported

}  // namespace heed
