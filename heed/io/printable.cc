#include "heed/io/printable.h"

#include <algorithm>

#include "heed/io/utf8.h"

namespace heed {
namespace {

constexpr size_t kLinesShown = 20;

// The size of the control character at i, or 0: C0, DEL, and C1 (U+0080 to U+009F, two bytes).
size_t control_bytes(std::string_view text, size_t i) {
  const auto code = static_cast<unsigned char>(text[i]);
  if (code < ' ' || code == 127) return 1;
  return code == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0 ? 2 : 0;
}

void append_escaped(std::string& out, std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  for (const char letter : bytes) {
    const auto code = static_cast<unsigned char>(letter);
    out += {'\\', 'x', digits[code / 16], digits[code % 16]};
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t bad = 0;
    const size_t end = std::min(find_bad_utf8(text, &bad), text.size());
    for (size_t i = 0; i < end;) {
      const size_t control = control_bytes(text, i);
      if (control > 0) {
        append_escaped(out, text.substr(i, control));
      } else {
        out += text[i];
      }
      i += std::max<size_t>(control, 1);
    }
    append_escaped(out, text.substr(end, bad));
    text.remove_prefix(end + bad);
  }
  return out;
}

std::string listed_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) out += "\n  " + printable(lines[i]);
  if (lines.size() > kLinesShown) out += "\n  and " + std::to_string(lines.size() - kLinesShown) + " more";
  return out;
}

}  // namespace heed
