#include "heed/cli/display_text.h"

#include <algorithm>

#include "heed/io/printable.h"
#include "heed/io/utf8.h"
#include "heed/text/unicode.h"

namespace heed::cli {

std::string display_text(const std::string& sentence, size_t longest) {
  if (find_bad_utf8(sentence) != sentence.npos) return display_text(printable(sentence), longest);
  std::string out;
  size_t at = 0;
  for (size_t letters = 0; at < sentence.size() && letters < longest; ++letters) {
    const char32_t c = text::next_char(sentence, at);
    if (text::classes_of(c) & text::kControl)
      out += ' ';
    else
      text::append_utf8(out, c);
  }
  return at < sentence.size() ? out + "..." : out;
}

std::string padded(const std::string& text, int64_t width) {
  return text + std::string(static_cast<size_t>(std::max<int64_t>(0, width - text::count_chars(text))), ' ');
}

}  // namespace heed::cli
