// Whole text files, plain or packed by gzip (RFC 1952: one member or several), and their lines.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include "heed/data/text_parts.h"

namespace heed {
namespace {

// Unpacks member after member; knows how far it has read.
class Unpacker {
 public:
  Unpacker(std::string_view file, const std::string& name) : file_(file), name_(name) {
    const int state = inflateInit2(&stream_, 15 + 16);  // 16: with gzip's header
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    check(state == Z_OK, name_, ": zlib cannot start");
  }
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  std::string all(int64_t limit) {
    std::string out;
    std::array<char, size_t{1} << 16> piece{};
    for (bool ended = false; !ended || at_ < file_.size();) {
      const size_t give = std::min(file_.size() - at_, size_t{1} << 30);                  // zlib counts in 32 bits
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file_.data() + at_));  // zlib only reads it
      stream_.avail_in = static_cast<uInt>(give);
      stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream_.avail_out = static_cast<uInt>(piece.size());
      const int state = inflate(&stream_, Z_NO_FLUSH);
      if (state == Z_MEM_ERROR) throw std::bad_alloc();
      at_ += give - stream_.avail_in;
      check<FileError>(state != Z_BUF_ERROR, name_, ": the packed data is cut short after ", out.size(),
                       " bytes of text; bring the file again");
      ended = state == Z_STREAM_END;
      check<FileError>(ended || state == Z_OK, name_, ": the packed data is damaged near byte ", at_, stream_.msg ? ": " : "",
                       stream_.msg ? stream_.msg : "", "; bring the file again");
      out.append(piece.data(), piece.size() - stream_.avail_out);
      check<FileError>(std::ssize(out) <= limit, name_, ": found more than ", limit, " bytes after unpacking, expected at most that; ",
                       "is this the right file?");
      if (ended) inflateReset(&stream_);
    }
    return out;
  }

 private:
  const std::string_view file_;
  const std::string& name_;
  size_t at_ = 0;
  z_stream stream_{};
};

// Bytes of the well-formed character at i, or 0.
size_t character_bytes(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0; };
  const auto follows = [&](size_t k, int least = 0x80, int most = 0xBF) { return byte(k) >= least && byte(k) <= most; };
  const int first = byte(i);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(i + 1) ? 2 : 0;
  // No longer forms than needed, no surrogates, nothing above U+10FFFF.
  if ((first & 0xF0) == 0xE0) return follows(i + 1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(i + 2) ? 3 : 0;
  if (first < 0xF0 || first > 0xF4) return 0;
  return follows(i + 1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(i + 2) && follows(i + 3) ? 4 : 0;
}

}  // namespace

void expect_utf8(const std::string& name, std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = character_bytes(text, i);
    if (bytes == 0) {
      const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n') + 1;
      fail<FileError>(name, ":", line, ": found ", in_quotes(text.substr(i, 4)),
                      ", expected UTF-8; convert the file first, with iconv say");
    }
    i += bytes;
  }
}

bool is_gap(char letter) { return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_gap(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_gap(text.back())) text.remove_suffix(1);
  return text;
}

std::string read_packed_text(const Path& path, int64_t limit) {
  const std::string name = path.string();
  const auto file = MappedFile::open(path);
  const std::string_view bytes = file->text(0, file->size());
  std::string text = bytes.starts_with("\x1f\x8b") ? Unpacker(bytes, name).all(limit) : read_text(path, limit);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // a byte order mark
  expect_utf8(name, text);
  return text;
}

std::vector<std::string> lines_of(std::string text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const bool returned = end > begin && text[end - 1] == '\r';
    lines.push_back(text.substr(begin, end - begin - (returned ? 1 : 0)));
    begin = end + 1;
  }
  return lines;
}

}  // namespace heed
