#include "heed/io/unpack.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace heed {
namespace {

constexpr int64_t kFreely = int64_t{16} << 20, kRatio = 256;
constexpr size_t kPiece = size_t{1} << 20;  // zlib counts in 32 bits; the ratio is looked at after every piece

}  // namespace

struct Unpacker::Stream {
  z_stream zlib{};
  ~Stream() { inflateEnd(&zlib); }
};

Unpacker::Unpacker(std::span<const std::byte> file, std::string name) : file_(file), name_(std::move(name)) {
  if (!is_packed({reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 2)})) return;
  stream_ = std::make_unique<Stream>();
  const int state = inflateInit2(&stream_->zlib, 15 + 16);  // 16: with gzip's header
  if (state == Z_MEM_ERROR) throw std::bad_alloc();
  check(state == Z_OK, name_, ": zlib cannot start");
}

Unpacker::~Unpacker() = default;

int64_t Unpacker::bound() const {
  const auto left = static_cast<int64_t>(file_.size() - position_);
  if (!stream_) return left;
  // deflate never makes data more than 1032 times larger; of what is read already, a match of 258 bytes may still come.
  return std::min(1032 * left + 258, kFreely + kRatio * static_cast<int64_t>(file_.size()) - unpacked_);
}

size_t Unpacker::read(std::span<std::byte> to) {
  if (stream_) return unpack(to);
  const size_t count = std::min(to.size(), file_.size() - position_);
  std::copy_n(file_.begin() + static_cast<std::ptrdiff_t>(position_), count, to.begin());
  position_ += count;
  return count;
}

size_t Unpacker::unpack(std::span<std::byte> to) {
  z_stream& zlib = stream_->zlib;
  size_t done = 0;
  while (done < to.size()) {
    if (ended_) {
      if (position_ == file_.size()) break;
      const size_t left = file_.size() - position_;
      check<FileError>(is_packed({reinterpret_cast<const char*>(file_.data() + position_), std::min<size_t>(left, 2)}), name_, ": ", left,
                       " bytes follow behind the packed data; bring the file again");
      inflateReset(&zlib);
      ended_ = false;
    }
    const size_t give = std::min(file_.size() - position_, kPiece), take = std::min(to.size() - done, kPiece);
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file_.data() + position_));  // zlib only reads it
    zlib.avail_in = static_cast<uInt>(give);
    zlib.next_out = reinterpret_cast<Bytef*>(to.data() + done);
    zlib.avail_out = static_cast<uInt>(take);
    const int state = inflate(&zlib, Z_NO_FLUSH);
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    position_ += give - zlib.avail_in;
    done += take - zlib.avail_out;
    unpacked_ += static_cast<int64_t>(take - zlib.avail_out);
    check<FileError>(state != Z_BUF_ERROR, name_, ": the packed data is cut short after ", unpacked_, " bytes; bring the file again");
    ended_ = state == Z_STREAM_END;
    check<FileError>(ended_ || state == Z_OK, name_, ": the packed data is damaged near byte ", position_, zlib.msg ? ": " : "",
                     zlib.msg ? zlib.msg : "", "; bring the file again");
    check<FileError>(unpacked_ <= kFreely + kRatio * static_cast<int64_t>(position_), name_, ": the first ", position_,
                     " packed bytes make more than ", unpacked_ >> 20, " MiB, expected at most ", kRatio,
                     " times as much as is packed; if the file is what it should be, unpack it first: gunzip -k");
  }
  return done;
}

}  // namespace heed
