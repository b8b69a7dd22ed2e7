// Whole text files, plain or packed by gzip, and their lines.
#include <algorithm>

#include "heed/data/text_parts.h"
#include "heed/io/file_kind.h"
#include "heed/io/reading.h"
#include "heed/io/unpack.h"

namespace heed {
namespace {

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
  const std::string kind = kind_of_bytes(text);
  check<FileError>(kind.empty(), name, ": found ", kind, ", expected UTF-8 text", advice_for(kind, name));
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = character_bytes(text, i);
    if (bytes == 0) {
      const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n') + 1;
      fail<FileError>(name, ":", line, ": found ", in_quotes(text.substr(i, 4)),
                      ", expected UTF-8; convert the file first, from Windows-1252 for example: iconv -f WINDOWS-1252 -t UTF-8 ", name,
                      " > NEW");
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
  std::string text;
  if (Unpacker::is_packed(file->text(0, std::min<int64_t>(file->size(), 2)))) {
    Unpacker unpacker({file->data(), static_cast<size_t>(file->size())}, name);
    Reading progress("reading " + name, file->size());
    constexpr size_t piece = size_t{1} << 20;
    for (size_t filled = 0, got = piece; got == piece; filled += got) {
      text.resize(filled + piece);
      got = unpacker.read(std::as_writable_bytes(std::span(text).subspan(filled)));
      text.resize(filled + got);
      check<FileError>(std::ssize(text) <= limit, name, ": found more than ", limit, " bytes after unpacking, expected at most that; ",
                       "is this the right file?");
      progress.at(unpacker.read_so_far());
    }
  } else {
    text = read_text(path, limit);
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // a byte order mark
  expect_utf8(name, text);
  return text;
}

bool TextLines::next(std::string_view& line) {
  if (text_.empty()) return false;
  const size_t end = std::min(text_.find('\n'), text_.size());
  const bool returned = end > 0 && text_[end - 1] == '\r';
  line = text_.substr(0, end - (returned ? 1 : 0));
  text_.remove_prefix(std::min(end + 1, text_.size()));
  return true;
}

}  // namespace heed
