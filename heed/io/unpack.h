// The bytes of a file in order, unpacked where the file is packed by gzip (RFC 1952: one member or several). This is the one place
// where .gz is read: what a small file can unpack to is bounded here for every reader.
#pragma once

#include <memory>
#include <span>

#include "heed/io/file.h"

namespace heed {

class Unpacker {
 public:
  // file: must outlive the reader. name: of the file, for messages
  Unpacker(std::span<const std::byte> file, std::string name);
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  static bool is_packed(std::string_view first_bytes) { return first_bytes.starts_with("\x1f\x8b"); }

  // Fills `to` as far as the file goes -> how many bytes; fewer than asked for: the end. Damage is a FileError, and so is a file that
  // unpacks to more than 16 MiB and 256 times its size: texts and images never do.
  size_t read(std::span<std::byte> to);

  int64_t read_so_far() const { return static_cast<int64_t>(position_); }  // bytes of the file, packed as they are
  int64_t bound() const;                                                   // the most bytes that can still come

 private:
  struct Stream;
  size_t unpack(std::span<std::byte> to);

  const std::span<const std::byte> file_;
  const std::string name_;
  size_t position_ = 0;
  int64_t unpacked_ = 0;
  bool ended_ = false;              // the last member is complete
  std::unique_ptr<Stream> stream_;  // null: the file is not packed
};

}  // namespace heed
