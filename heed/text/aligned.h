// Text during normalization. Every byte keeps the span of the original text that it came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/check.h"
#include "heed/text/unicode.h"

namespace HEED_API heed {
namespace text {

struct Span {  // bytes [begin, end)
  uint32_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

// Normalization made a text far longer. The current step catches this and adds its name (with_step_name).
class TextTooLongError : public FileError {
 public:
  using FileError::FileError;
};
// Maximum size of a normalized text. The longest Unicode decomposition turns 3 bytes into 33.
constexpr size_t growth_limit(size_t bytes) { return 16 * bytes + 1024; }

class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(std::string_view original);  // invalid UTF-8 becomes U+FFFD

  std::string text;

  void append(std::string_view bytes, Span source) {
    if (text.size() + bytes.size() > max_bytes_) fail_too_long();
    text.append(bytes);
    sources_.resize(text.size(), source);
  }
  void append(char32_t c, Span source) {
    if (text.size() >= max_bytes_) fail_too_long();
    append_utf8(text, c);
    sources_.resize(text.size(), source);
  }
  void append(const Aligned& other, size_t begin, size_t end);  // bytes [begin, end) of another text, with their sources
  // The span of the original covering the sources of bytes [begin, end), in whole characters.
  Span source(size_t begin, size_t end) const;

  // An empty text with this one's growth limit, with memory reserved for appending.
  Aligned next() const;
  void cut(Span part, Aligned& out) const;
  // Limits this text, and texts derived from it, to growth_limit of its current size.
  void limit_growth();

 private:
  [[noreturn]] void fail_too_long() const;

  size_t max_bytes_ = UINT32_MAX - 4;  // bytes
  std::vector<Span> sources_;          // per byte; empty while same_: byte i is then byte begin_ + i of the original
  bool same_ = false;
  uint32_t begin_ = 0;
};

// Runs a tokenizer step; prefixes a TextTooLongError with the step's name.
template <class Step>
void with_step_name(const std::string& name, const Step& step) {
  try {
    step();
  } catch (const TextTooLongError& error) {
    fail<FileError>(name, ": ", error.what());
  }
}

// body(c, source) for every character.
template <class Body>
void each_char(const Aligned& in, const Body& body) {
  for (size_t i = 0; i < in.text.size();) {
    const size_t begin = i;
    const char32_t c = next_char(in.text, i);
    body(c, in.source(begin, i));
  }
}

}  // namespace text
}  // namespace heed
