// A text on its way through normalization, and for each of its bytes the place in the original that it came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/core/check.h"
#include "heed/text/unicode.h"

namespace heed::text {

struct Span {  // bytes [begin, end)
  uint32_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

// A text that normalization made far longer than it was. The step at work catches it and adds its own name.
class OvergrownError : public FileError {
 public:
  using FileError::FileError;
};
// How long a text of so many bytes may become. The longest decomposition of Unicode makes 33 bytes of 3.
constexpr size_t grown_limit(size_t bytes) { return 16 * bytes + 1024; }

class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(std::string_view original);  // U+FFFD stands for bytes that are not UTF-8

  std::string text;

  void append(std::string_view bytes, Span source) {
    if (text.size() + bytes.size() > most_) overgrown();
    text.append(bytes);
    sources_.resize(text.size(), source);
  }
  void append(char32_t c, Span source) {
    if (text.size() >= most_) overgrown();
    append_utf8(text, c);
    sources_.resize(text.size(), source);
  }
  void append(const Aligned& other, size_t begin, size_t end);  // bytes [begin, end) of another text, with their places
  // Where bytes [begin, end) came from, in whole characters: all that lies between the first place and the last.
  Span source(size_t begin, size_t end) const;

  // A text that will be appended to, with room for as many bytes as this one has.
  Aligned next() const;
  // The part [begin, end) as a text of its own.
  void cut(Span part, Aligned& out) const;
  // From here on the text, and what is made of it, may grow to grown_limit of its size.
  void limit_growth();

 private:
  [[noreturn]] void overgrown() const;

  size_t most_ = UINT32_MAX - 4;  // bytes
  std::vector<Span> sources_;     // of each byte; none while the text is as it was: then byte i is byte begin_ + i of the original
  bool same_ = false;
  uint32_t begin_ = 0;
};

// Runs a step of a tokenizer; `name` comes before its complaint that a text has grown too long.
template <class Step>
void naming_step(const std::string& name, const Step& step) {
  try {
    step();
  } catch (const OvergrownError& error) {
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

}  // namespace heed::text
