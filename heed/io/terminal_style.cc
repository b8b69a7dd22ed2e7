#include "heed/io/terminal_style.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace heed {

std::string styled(const std::string& text, TextStyle paint, bool colour) {
  constexpr std::array codes{"1", "2", "32", "33", "31"};  // indexed by TextStyle
  return colour && !text.empty() ? "\x1b[" + std::string(codes[static_cast<size_t>(paint)]) + "m" + text + "\x1b[0m" : text;
}

bool is_terminal(int file) {
  const char* kind = std::getenv("TERM");
  return isatty(file) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

bool has_colour(int file) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(file) && (no_color == nullptr || *no_color == '\0');
}

std::string styled_headings(const std::string& text, bool colour) {
  if (!colour) return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    out += !line.empty() && line[0] != ' ' && line.back() == ':' ? styled(line, TextStyle::bold, true) : line;
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

}  // namespace heed
