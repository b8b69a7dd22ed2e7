// Characters: UTF-8 in and out, and the classes that tokenizers ask for. Unicode's data comes from utf8proc, with the few
// later or earlier assignments that the published tokenizers were made with; docs/text.md lists them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/io/utf8.h"
#include "heed/text/char_set.h"

namespace heed::text {

// Bits of classes_of.
enum CharClass : uint16_t {
  kSpace = 1,        // White_Space
  kLetter = 2,       // \p{L}
  kNumber = 4,       // \p{N}
  kPunctuation = 8,  // \p{P}; symbols of ASCII count for BERT only: see is_bert_punctuation
  kMark = 16,        // \p{M}
  kAccent = 32,      // \p{Mn}, the marks that BERT drops
  kControl = 64,     // \p{Cc} and the like, which BERT drops: \t, \n and \r are among them
  kWord = 128,       // \w: letters, marks, decimal digits, connectors
  kIdeograph = 256,  // the blocks that BERT sets apart as Chinese
  kNewLine = 512,    // \r and \n
  kNumeric = 1024,   // \p{N} of Unicode 17, which the pre-tokenizer Digits knows
};

namespace detail {
struct ClassTable {
  ClassTable();
  std::vector<uint16_t> of;  // one entry for each of the 0x110000 code points
};
const uint16_t* class_table();
}  // namespace detail

inline uint16_t classes_of(char32_t c) {
  static const uint16_t* const table = detail::class_table();
  return table[c];
}
inline bool is_space(char32_t c) { return classes_of(c) & kSpace; }
inline bool is_bert_punctuation(char32_t c) {
  return c < 128 ? (c > 32 && c < 127 && !(classes_of(c) & (kLetter | kNumber))) : (classes_of(c) & kPunctuation) != 0;
}

inline constexpr std::string_view kCategoryNames[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                                      "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                                      "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
// The characters of a general category of Unicode 16, or of a group of them: "Lu", "L".
CharSet chars_in(std::string_view category);

// The character at byte i of valid UTF-8; moves i behind it.
inline char32_t next_char(std::string_view text, size_t& i) {
  const auto byte = [&](size_t k) { return static_cast<char32_t>(static_cast<unsigned char>(text[k])); };
  const char32_t first = byte(i++);
  if (first < 0x80) return first;
  if (first < 0xE0) return (first & 0x1F) << 6 | (byte(i++) & 0x3F);
  if (first < 0xF0) {
    i += 2;
    return (first & 0x0F) << 12 | (byte(i - 2) & 0x3F) << 6 | (byte(i - 1) & 0x3F);
  }
  i += 3;
  return (first & 0x07) << 18 | (byte(i - 3) & 0x3F) << 12 | (byte(i - 2) & 0x3F) << 6 | (byte(i - 1) & 0x3F);
}
inline char32_t char_at(std::string_view text, size_t i) { return next_char(text, i); }

inline bool starts_char(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }
inline size_t char_bytes(char first) {  // of the character that begins with this byte
  const unsigned char c = static_cast<unsigned char>(first);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}
inline size_t char_before(std::string_view text, size_t i) {  // where the character that ends before byte i begins
  while (!starts_char(text[--i])) {
  }
  return i;
}

void append_utf8(std::string& out, char32_t c);
std::string utf8(char32_t c);
int64_t count_chars(std::string_view text);
bool is_ascii(std::string_view text);

using heed::find_bad_utf8;
std::string repaired_utf8(std::string_view text);  // U+FFFD for every mistake

char32_t lower(char32_t c);  // the first character of the lower case; U+0130 alone has a second, U+0307
constexpr char32_t kDottedCapitalI = 0x130, kDotAbove = 0x307, kReplacement = 0xFFFD;

// The full decomposition of one character (Unicode Standard Annex 15), and the class by which marks are ordered.
void decompose(char32_t c, bool compatible, std::vector<char32_t>& out);
int combining_class(char32_t c);
char32_t composed(char32_t a, char32_t b);                // the one character that stands for both, or 0
bool breaks_cluster(char32_t a, char32_t b, int& state);  // whether a user-perceived character ends between a and b

}  // namespace heed::text
