// Any text as a tokenizer expression (first line) and a text to search (the rest): refused, stopped by a limit, or ordered matches.
#include <cstdlib>

#include "heed/text/pattern.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  const std::string_view input = fuzz::text_of(data, size);
  const size_t end = std::min(input.find('\n'), input.size());
  const std::string expression = text::repaired_utf8(input.substr(0, end));
  const std::string searched = text::repaired_utf8(input.substr(std::min(end + 1, input.size())));
  try {
    std::vector<text::Span> matches;
    text::find_regex(expression, "input")(searched, matches);
    uint32_t last = 0;
    for (const text::Span& match : matches) {
      if (match.begin < last || match.begin >= match.end || match.end > searched.size()) std::abort();
      last = match.end;
    }
  } catch (const FileError&) {
  }
}
