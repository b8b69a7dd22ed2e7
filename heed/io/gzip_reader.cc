#include "heed/io/gzip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace heed {
namespace {

constexpr int64_t kFreeBytes = int64_t{16} << 20, kMaxRatio = 256;
constexpr size_t kInflateBytes = size_t{1} << 20;  // zlib counts in 32 bits; the ratio is checked after every chunk

}  // namespace

struct GzipReader::Stream {
  z_stream zlib{};
  ~Stream() { inflateEnd(&zlib); }
};

GzipReader::GzipReader(std::span<const std::byte> file, std::string name) : file_(file), name_(std::move(name)) {
  if (!is_gzip({reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 2)})) return;
  stream_ = std::make_unique<Stream>();
  const int state = inflateInit2(&stream_->zlib, 15 + 16);  // 16: gzip format
  if (state == Z_MEM_ERROR) throw std::bad_alloc();
  check(state == Z_OK, name_, ": zlib cannot start");
}

GzipReader::~GzipReader() = default;

int64_t GzipReader::bound() const {
  const auto left = static_cast<int64_t>(file_.size() - position_);
  if (!stream_) return left;
  // Deflate expands at most 1032 times; a match of 258 bytes may still be pending.
  return std::min(1032 * left + 258, kFreeBytes + kMaxRatio * static_cast<int64_t>(file_.size()) - unpacked_);
}

size_t GzipReader::read(std::span<std::byte> to) {
  if (stream_) return unpack(to);
  const size_t count = std::min(to.size(), file_.size() - position_);
  std::copy_n(file_.begin() + static_cast<std::ptrdiff_t>(position_), count, to.begin());
  position_ += count;
  return count;
}

size_t GzipReader::unpack(std::span<std::byte> to) {
  z_stream& zlib = stream_->zlib;
  size_t done = 0;
  while (done < to.size()) {
    if (ended_) {
      const auto rest = file_.subspan(position_);
      if (std::all_of(rest.begin(), rest.end(), [](std::byte each) { return each == std::byte{0}; })) {  // the end, or padding
        position_ = file_.size();
        break;
      }
      check<FileError>(is_gzip({reinterpret_cast<const char*>(rest.data()), std::min<size_t>(rest.size(), 2)}), name_, ": found ",
                       rest.size(), " bytes after the gzip data; copy or download it again");
      inflateReset(&zlib);
      ended_ = false;
    }
    const size_t input_bytes = std::min(file_.size() - position_, kInflateBytes), output_bytes = std::min(to.size() - done, kInflateBytes);
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file_.data() + position_));  // zlib does not write it
    zlib.avail_in = static_cast<uInt>(input_bytes);
    zlib.next_out = reinterpret_cast<Bytef*>(to.data() + done);
    zlib.avail_out = static_cast<uInt>(output_bytes);
    const int state = inflate(&zlib, Z_NO_FLUSH);
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    position_ += input_bytes - zlib.avail_in;
    done += output_bytes - zlib.avail_out;
    unpacked_ += static_cast<int64_t>(output_bytes - zlib.avail_out);
    check<FileError>(state != Z_BUF_ERROR, name_, ": the gzip data is truncated after ", unpacked_, " bytes; copy or download it again");
    ended_ = state == Z_STREAM_END;
    check<FileError>(ended_ || state == Z_OK, name_, ": the gzip data is damaged near byte ", position_, zlib.msg ? ": " : "",
                     zlib.msg ? zlib.msg : "", "; copy or download it again");
    check<FileError>(unpacked_ <= kFreeBytes + kMaxRatio * static_cast<int64_t>(position_), name_, ": the first ", position_,
                     " compressed bytes expand to more than ", unpacked_ >> 20, " MiB, expected at most ", kMaxRatio,
                     " times the compressed size; if the file is correct, decompress it first: gunzip -k");
  }
  return done;
}

}  // namespace heed
