// Text files, plain or gzip-compressed, and their lines.
#include <algorithm>

#include "heed/data/text_parts.h"
#include "heed/io/file_kind.h"
#include "heed/io/gzip_reader.h"
#include "heed/io/read_progress.h"
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

bool is_whitespace(char letter) { return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_whitespace(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_whitespace(text.back())) text.remove_suffix(1);
  return text;
}

std::string read_text_or_gzip(const Path& path, int64_t limit) {
  const std::string name = path.string();
  const auto file = MappedFile::open(path);
  std::string text;
  if (GzipReader::is_gzip(file->text(0, std::min<int64_t>(file->size(), 2)))) {
    GzipReader unpacker({file->data(), static_cast<size_t>(file->size())}, name);
    ReadProgress progress("reading " + name, file->size());
    constexpr size_t chunk = size_t{1} << 20;
    for (size_t filled = 0, read_bytes = chunk; read_bytes == chunk; filled += read_bytes) {
      text.resize(filled + chunk);
      read_bytes = unpacker.read(std::as_writable_bytes(std::span(text).subspan(filled)));
      text.resize(filled + read_bytes);
      check<FileError>(std::ssize(text) <= limit, name, ": found more than ", limit,
                       " bytes after decompression, expected at most that many; ", "is this the right file?");
      progress.at(unpacker.read_so_far());
    }
  } else {
    text = read_text(path, limit);
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // byte order mark
  expect_utf8(name, text);
  return text;
}

bool TextLines::next(std::string_view& line) {
  if (text_.empty()) return false;
  const size_t end = std::min(text_.find('\n'), text_.size());
  const bool has_return = end > 0 && text_[end - 1] == '\r';
  line = text_.substr(0, end - (has_return ? 1 : 0));
  text_.remove_prefix(std::min(end + 1, text_.size()));
  return true;
}

}  // namespace heed
