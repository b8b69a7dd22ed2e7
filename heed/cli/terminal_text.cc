#include "heed/cli/terminal_text.h"

#include <unistd.h>

#include <algorithm>

#include "heed/cli/progress.h"
#include "heed/io/terminal_style.h"

namespace heed::cli {
namespace {

constexpr size_t kHelpColumn = 30;  // of the descriptions in --help
constexpr size_t kLeast = 20;       // letters after an indent

size_t indent_of(const std::string& line, size_t width) {
  const size_t start = line.find_first_not_of(' '), gap = line.find("  ", start);
  size_t out = start;
  if (gap != line.npos) out = line.find_first_not_of(' ', gap);
  // A flag that ends right before the column of descriptions.
  if (line.starts_with("  -") && line.size() > kHelpColumn && line[kHelpColumn - 1] == ' ' && line[kHelpColumn] != ' ') out = kHelpColumn;
  return out == start || out + kLeast <= width ? out : std::min(start + 2, width / 2);
}

std::string wrapped_line(std::string line, size_t width) {
  const bool is_command = line.starts_with("  heed ") && line.find("  ", 2) == line.npos;
  if (line.size() <= width || is_command || line.find_first_not_of(' ') == line.npos) return line;
  const size_t indent = indent_of(line, width);
  std::string out;
  while (line.size() > width) {
    size_t space = line.rfind(' ', width);
    if (space == line.npos || space < indent) space = line.find(' ', width);  // a word that is too long
    if (space == line.npos) break;
    const size_t next = line.find_first_not_of(' ', space);
    if (next == line.npos) break;
    out += line.substr(0, line.find_last_not_of(' ', space) + 1) + '\n';
    line = std::string(indent, ' ') + line.substr(next);
  }
  return out + line;
}

}  // namespace

std::string wrapped(const std::string& text, size_t width) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += wrapped_line(text.substr(at, end - at), width);
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

std::string for_terminal(const std::string& text) {
  return is_terminal(STDOUT_FILENO) ? wrapped(text, static_cast<size_t>(terminal_width())) : text;
}

}  // namespace heed::cli
