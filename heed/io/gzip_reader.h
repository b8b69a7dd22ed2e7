// Sequential reading of plain or gzip-compressed files (RFC 1952, one or more members). All .gz files are read here, which limits the
// decompressed size for every reader.
#pragma once

#include <memory>
#include <span>

#include "heed/io/file.h"

namespace heed {

class GzipReader {
 public:
  // file: must outlive the reader. name: for error messages
  GzipReader(std::span<const std::byte> file, std::string name);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  static bool is_gzip(std::string_view first_bytes) { return first_bytes.starts_with("\x1f\x8b"); }

  // Returns the number of bytes read, fewer than to.size() only at the end. Damaged data is a FileError, and so are files that
  // decompress to more than 16 MiB plus 256 times their size: texts and images never do.
  size_t read(std::span<std::byte> to);

  int64_t read_so_far() const { return static_cast<int64_t>(position_); }  // compressed bytes of the file
  int64_t bound() const;                                                   // upper bound of the remaining bytes

 private:
  struct Stream;
  size_t unpack(std::span<std::byte> to);

  const std::span<const std::byte> file_;
  const std::string name_;
  size_t position_ = 0;
  int64_t unpacked_ = 0;
  bool ended_ = false;              // the last member is complete
  std::unique_ptr<Stream> stream_;  // null: not compressed
};

}  // namespace heed
