#include "heed/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <vector>

#include "heed/io/file.h"

namespace heed {
namespace {

using Bytes = std::vector<std::byte>;

// Hands out the file's bytes in order, unpacked.
class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& name)
      : file_(file), name_(name), packed_(file.size() >= 2 && file[0] == std::byte{0x1f} && file[1] == std::byte{0x8b}) {
    const int state = packed_ ? inflateInit2(&stream_, 15 + 16) : Z_OK;  // 16: with gzip's header
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    check(state == Z_OK, name_, ": zlib cannot start");
  }
  ~Reader() {
    if (packed_) inflateEnd(&stream_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The most that can still come: deflate never makes data more than 1032 times larger.
  int64_t bound() const { return static_cast<int64_t>(file_.size() - position_) * (packed_ ? 1032 : 1); }

  // Fills `to` as far as the file goes and says how far that is.
  size_t read(std::span<std::byte> to) {
    if (packed_) return unpack(to);
    const size_t count = std::min(to.size(), file_.size() - position_);
    std::copy_n(file_.begin() + static_cast<std::ptrdiff_t>(position_), count, to.begin());
    position_ += count;
    return count;
  }

  void expect_end() {
    std::byte more{};
    check<FileError>(read({&more, 1}) == 0, name_, ": bytes follow behind the last element");
    check<FileError>(!packed_ || finished_, name_, ": the packed data is cut short");
    check<FileError>(position_ == file_.size(), name_, ": ", file_.size() - position_, " bytes follow behind the packed data");
  }

 private:
  size_t unpack(std::span<std::byte> to) {
    constexpr size_t most = size_t{1} << 30;  // zlib counts in 32 bits
    size_t done = 0;
    while (done < to.size() && !finished_) {
      const size_t give = std::min(file_.size() - position_, most), take = std::min(to.size() - done, most);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file_.data() + position_));  // zlib only reads it
      stream_.avail_in = static_cast<uInt>(give);
      stream_.next_out = reinterpret_cast<Bytef*>(to.data() + done);
      stream_.avail_out = static_cast<uInt>(take);
      const int state = inflate(&stream_, Z_NO_FLUSH);
      if (state == Z_MEM_ERROR) throw std::bad_alloc();
      position_ += give - stream_.avail_in;
      done += take - stream_.avail_out;
      finished_ = state == Z_STREAM_END;
      if (state == Z_BUF_ERROR) break;  // nothing left to read
      check<FileError>(finished_ || state == Z_OK, name_, ": the packed data is damaged", stream_.msg ? ": " : "",
                       stream_.msg ? stream_.msg : "");
    }
    return done;
  }

  const std::span<const std::byte> file_;
  const std::string& name_;
  const bool packed_;
  size_t position_ = 0;
  bool finished_ = false;
  z_stream stream_{};
};

Shape read_header(Reader& in, const std::string& name) {
  std::array<std::byte, 4> magic{};
  check<FileError>(in.read(magic) == magic.size(), name, ": too short for an IDX file");
  check<FileError>(magic[0] == std::byte{0} && magic[1] == std::byte{0}, name, ": not an IDX file");
  const int type = std::to_integer<int>(magic[2]), rank = std::to_integer<int>(magic[3]);
  check<FileError>(type == 0x08, name, ": IDX element type ", type, ", expected 8 (bytes)");
  check<FileError>(rank >= 1 && rank <= kMaxRank, name, ": ", rank, " axes, expected 1 to ", kMaxRank);
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    std::array<std::byte, 4> size{};
    check<FileError>(in.read(size) == size.size(), name, ": the header is cut short");
    uint32_t value = 0;
    for (std::byte part : size) value = value << 8 | std::to_integer<uint32_t>(part);
    shape.push_back(value);
  }
  return shape;
}

}  // namespace

Tensor parse_idx(std::span<const std::byte> file, const std::string& name) {
  Reader in(file, name);
  const Shape shape = read_header(in, name);
  int64_t expected = 0;
  try {
    expected = count(shape);
  } catch (const Error&) {
    fail<FileError>(name, ": the sizes ", shape, " are too large");
  }
  // Before memory is taken: a few bytes must not be able to ask for all of it.
  check<FileError>(expected <= in.bound(), name, ": ", file.size(), " bytes cannot hold the ", expected, " elements of ", shape);
  const auto elements = std::make_shared<Bytes>(static_cast<size_t>(expected));
  const size_t found = in.read(*elements);
  check<FileError>(found == elements->size(), name, ": ", found, " elements, expected ", expected);
  in.expect_end();
  return Tensor::borrow(elements, elements->data(), shape, DType::u8);
}

Tensor read_idx(const std::string& path) {
  const auto file = MappedFile::open(path);
  return parse_idx({file->data(), static_cast<size_t>(file->size())}, path);
}

}  // namespace heed
