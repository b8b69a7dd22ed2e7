// Whole text files, plain or packed by gzip, and their lines.
#include <algorithm>

#include "heed/data/text_parts.h"
#include "heed/io/file_kind.h"
#include "heed/io/reading.h"
#include "heed/io/unpack.h"
#include "heed/io/utf8.h"

namespace heed {

void expect_utf8(const std::string& name, std::string_view text) {
  const std::string kind = kind_of_bytes(text);
  check<FileError>(kind.empty(), name, ": found ", kind, ", expected UTF-8 text", advice_for(kind, name));
  const size_t bad = find_bad_utf8(text);
  if (bad == text.npos) return;
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n') + 1;
  fail<FileError>(name, ":", line, ": found ", in_quotes(text.substr(bad, 4)),
                  ", expected UTF-8; convert the file first, from Windows-1252 for example: iconv -f WINDOWS-1252 -t UTF-8 ", name,
                  " > NEW");
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
