// Any bytes as a tokenizer.json: refused, or a tokenizer that encodes and decodes unusual texts safely.
#include <cstdlib>

#include "heed/text/tokenizer.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  const std::string texts[] = {"", "Hello, world! I'll  \t\n x1 23",
                               "\u00c9t\u00e9 e\u0301\u0323 \u4f60\u597d \U0001F468\u200D\U0001F469\u0130",
                               "[MASK] <s>a</s>\xFF\xE2\x82 \u2581\u3000", std::string(300, 'a')};
  try {
    const Tokenizer tokenizer = Tokenizer::from_json(std::string_view(reinterpret_cast<const char*>(data), size), "input");
    for (const std::string& text : texts) try {
        const Encoding encoding = tokenizer.encode(text, "a pair");
        if (encoding.offsets.size() != encoding.ids.size()) std::abort();
        for (const text::Span at : encoding.offsets)
          if (at.begin > at.end || at.end > std::max<size_t>(text.size(), 6)) std::abort();
        tokenizer.decode(encoding.ids, false);
      } catch (const Error&) {  // e.g. an expression stopped by a limit, text that no token covers
      }
  } catch (const FileError&) {
  }
}
