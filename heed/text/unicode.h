// UTF-8 conversion and the character classes that tokenizers use. Unicode data comes from utf8proc, adjusted to the Unicode versions of
// the published tokenizers; docs/text.md lists the differences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/utf8.h"
#include "heed/text/char_set.h"

namespace HEED_API heed {
namespace text {

// Bits of classes_of.
enum CharClass : uint16_t {
  kSpace = 1,        // White_Space
  kLetter = 2,       // \p{L}
  kNumber = 4,       // \p{N}
  kPunctuation = 8,  // \p{P}; ASCII symbols count only for BERT, see is_bert_punctuation
  kMark = 16,        // \p{M}
  kAccent = 32,      // \p{Mn}, the marks that BERT drops
  kControl = 64,     // \p{Cc}, \p{Cf}, \p{Co}, which BERT drops; includes \t, \n and \r
  kWord = 128,       // \w: letters, marks, decimal digits, connectors
  kIdeograph = 256,  // the blocks that BERT isolates as Chinese
  kNewLine = 512,    // \r and \n
  kNumeric = 1024,   // \p{N} of Unicode 17, for the pre-tokenizer Digits
};

namespace detail {
struct ClassTable {
  ClassTable();
  std::vector<uint16_t> of;  // one entry per code point
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
// The characters of a Unicode 16 general category or group: "Lu", "L".
CharSet chars_in(std::string_view category);

// The character at byte i of valid UTF-8; moves i past it.
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
inline size_t char_bytes(char first) {  // of the character starting with this byte
  const unsigned char c = static_cast<unsigned char>(first);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}
inline size_t char_before(std::string_view text, size_t i) {  // start of the character before byte i
  while (!starts_char(text[--i])) {
  }
  return i;
}

void append_utf8(std::string& out, char32_t c);
std::string utf8(char32_t c);
int64_t count_chars(std::string_view text);
bool is_ascii(std::string_view text);

using heed::find_bad_utf8;
std::string repaired_utf8(std::string_view text);  // every error becomes U+FFFD

char32_t lower(char32_t c);  // first character of the lowercase form; only U+0130 has a second, U+0307
constexpr char32_t kDottedCapitalI = 0x130, kDotAbove = 0x307, kReplacement = 0xFFFD;

// The full decomposition of one character (Unicode Standard Annex 15).
void decompose(char32_t c, bool compatible, std::vector<char32_t>& out);
int combining_class(char32_t c);
char32_t compose_pair(char32_t a, char32_t b);            // their canonical composition, or 0
bool breaks_cluster(char32_t a, char32_t b, int& state);  // whether a grapheme cluster ends between a and b

}  // namespace text
}  // namespace heed
