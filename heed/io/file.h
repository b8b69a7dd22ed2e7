// Files: mapped into memory to be read, written whole or not at all. Every problem is a FileError that gives the path
// first, then what was found, what was expected, and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "heed/core/check.h"

namespace heed {

using Path = std::filesystem::path;

// A file or folder that could not be written: a full disk, a folder that is read-only. The contents of no file are to blame.
class WriteError : public FileError {
 public:
  using FileError::FileError;
  int exit_code() const override { return 1; }
};

// Text from a file as it may stand in a message: quoted, shortened, and without bytes that a terminal would obey.
std::string in_quotes(std::string_view text, size_t longest = 100);

// The bytes of a file. They may be written, so that a tensor can borrow them: such writes stay in this process and never
// reach the file. Pages are read when they are first touched; where the file was shortened meanwhile, mapped_ranges.h has what happens.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const Path& path);
  static std::shared_ptr<const MappedFile> in_memory(std::string name, std::span<const std::byte> bytes);  // a copy of bytes
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  std::byte* data() const { return data_; }
  std::string_view text(int64_t begin, int64_t bytes) const;

  // Lets go of the whole pages inside a range, which nobody may have written: the next touch reads the file again.
  void release(int64_t begin, int64_t bytes) const;

 private:
  explicit MappedFile(std::string name) : name_(std::move(name)) {}

  std::string name_;
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  std::unique_ptr<std::byte[]> copy_;  // null: data_ is a mapping
  int place_ = -1;                     // among the mapped ranges
};

// Removes a file or a folder with all that is in it, as far as that is possible: for destructors.
void remove_quietly(const Path& path) noexcept;

// All of a text file, which may have at most `limit` bytes.
std::string read_text(const Path& path, int64_t limit);

// Writes beside the target, under a temporary name; commit() puts the file in its place in one step. Without it, or when
// anything fails, the temporary file is removed and what stood under the name before stays as it was.
class FileWriter {
 public:
  explicit FileWriter(const Path& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void finish();  // everything is on the disk, still under the temporary name: a full disk shows here at the latest
  void commit();  // finishes and renames

 private:
  [[noreturn]] void give_up(const char* what, int error) const;

  Path target_, temporary_;
  int descriptor_ = -1;
  int64_t written_ = 0;
  bool committed_ = false;
};

void write_text(const Path& path, std::string_view text);

}  // namespace heed
