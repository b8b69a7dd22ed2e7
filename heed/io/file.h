// Files: memory-mapped for reading, written atomically. Errors are FileErrors: the path, what was found, what was expected, what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "heed/core/api.h"
#include "heed/core/check.h"

namespace HEED_API heed {

using Path = std::filesystem::path;  // a file or folder

// A file or folder that could not be written: full disk, read-only folder. Not caused by the contents of a file.
class WriteError : public FileError {
 public:
  using FileError::FileError;
  int exit_code() const override { return 1; }
};

// Text from a file for error messages: quoted, shortened, with control characters escaped.
std::string in_quotes(std::string_view text, size_t longest = 100);

// The bytes of a file, mapped copy-on-write so that tensors can borrow them: writes never reach the file. Pages are read on first
// access, which raises SIGBUS if the file was truncated in the meantime.
class MappedFile {
 public:
  // Maps a file, or copies bytes that are in memory already.
  static std::shared_ptr<const MappedFile> open(const Path& path);
  static std::shared_ptr<const MappedFile> in_memory(std::string name, std::span<const std::byte> bytes);  // copies
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // The path for messages, the number of bytes, and the bytes, as they are or as text.
  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  std::byte* data() const { return data_; }
  std::string_view text(int64_t begin, int64_t bytes) const;

  // Releases the whole pages inside a range, which must not have been written: the next access reads the file again.
  void release(int64_t begin, int64_t bytes) const;

 private:
  explicit MappedFile(std::string name) : name_(std::move(name)) {}

  std::string name_;
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  std::unique_ptr<std::byte[]> copy_;  // null: data_ is a mapping
  int mapping_ = -1;                   // in the list of mapped ranges
};

// Removes a file or a folder with its contents, ignoring errors: for destructors.
void remove_quietly(const Path& path) noexcept;

// The contents of a file of at most `limit` bytes.
std::string read_text(const Path& path, int64_t limit);

// Writes to a temporary file next to the target; commit() renames it atomically. Without commit(), or on failure, the temporary file
// is removed and an existing target is unchanged.
class FileWriter {
 public:
  explicit FileWriter(const Path& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Appends.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void finish();  // flushes to disk under the temporary name; a full disk is reported here at the latest
  void commit();  // finishes and renames

 private:
  [[noreturn]] void give_up(const char* what, int error) const;

  Path target_, temporary_;
  int descriptor_ = -1;
  int64_t written_ = 0;
  bool committed_ = false;
};

void write_text(const Path& path, std::string_view text);  // atomically

}  // namespace heed
