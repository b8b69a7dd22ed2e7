// A text on its way through normalization, and for each of its bytes the place in the original that it came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/text/unicode.h"

namespace heed::text {

struct Span {  // bytes [begin, end)
  uint32_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(std::string_view original);  // U+FFFD stands for bytes that are not UTF-8

  std::string text;

  void append(std::string_view bytes, Span source) {
    text.append(bytes);
    sources_.resize(text.size(), source);
  }
  void append(char32_t c, Span source) {
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

 private:
  std::vector<Span> sources_;  // of each byte; none while the text is as it was: then byte i is byte begin_ + i of the original
  bool same_ = false;
  uint32_t begin_ = 0;
};

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
