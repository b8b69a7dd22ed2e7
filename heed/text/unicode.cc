#include "heed/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "heed/text/unicode_later.h"
#include "heed/text/unicode_versions.h"

namespace heed::text {
namespace {

using Category = uint8_t;  // index into kCategoryNames, in the order of utf8proc_category_t

Category category_number(std::string_view name) {
  return static_cast<Category>(std::find(std::begin(kCategoryNames), std::end(kCategoryNames), name) - std::begin(kCategoryNames));
}

bool among(std::span<const Range> ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(), [c](const Range& range) { return c >= range.first && c <= range.last; });
}

uint16_t classes_in_utf8proc(char32_t c) {
  const bool circled = among(kAlphabeticSymbols, c);
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return kLetter | kWord;
    case UTF8PROC_CATEGORY_MN: return kMark | kAccent | kWord;
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return kMark | kWord;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL: return kNumber | kNumeric | kWord;
    case UTF8PROC_CATEGORY_NO: return kNumber | kNumeric;
    case UTF8PROC_CATEGORY_PC: return kPunctuation | kWord;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return kPunctuation;
    case UTF8PROC_CATEGORY_SO: return circled ? kWord : 0;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return kSpace;
    case UTF8PROC_CATEGORY_CC: return kControl | ((c >= 9 && c <= 13) || c == 0x85 ? kSpace : 0);
    case UTF8PROC_CATEGORY_CF: return kControl | (c == 0x200C || c == 0x200D ? kWord : 0);
    case UTF8PROC_CATEGORY_CO: return kControl;
    default: return 0;
  }
}

uint16_t later_classes(std::string_view category) {
  if (category[0] == 'L') return kLetter | kWord;
  if (category[0] == 'N') return static_cast<uint16_t>(kNumber | kNumeric | (category == "No" ? 0 : kWord));
  return category[0] == 'M' ? kWord : 0;
}

}  // namespace

CharSet chars_in(std::string_view category) {
  struct Run {
    Range chars;
    Category category;
  };
  static const std::vector<Run> runs = [] {
    std::vector<Category> of(0x110000);
    for (char32_t c = 0; c < of.size(); ++c) of[c] = static_cast<Category>(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
    for (const LaterChars& later : kLaterChars)
      std::fill(of.begin() + later.first, of.begin() + later.last + 1, category_number(later.category));
    std::vector<Run> out;
    for (char32_t c = 0; c < of.size(); ++c) {
      if (out.empty() || out.back().category != of[c]) out.push_back({{c, c}, of[c]});
      out.back().chars.last = c;
    }
    return out;
  }();
  CharSet out;
  for (const Run& run : runs)
    if (kCategoryNames[run.category].starts_with(category)) out.push_back(run.chars);
  return char_set(std::move(out));
}

namespace detail {

ClassTable::ClassTable() : of(0x110000) {
  for (char32_t c = 0; c < of.size(); ++c) of[c] = classes_in_utf8proc(c);
  const auto change = [&](std::span<const Range> ranges, int add, int remove) {
    for (const Range& range : ranges)
      for (char32_t c = range.first; c <= range.last; ++c) of[c] = static_cast<uint16_t>((of[c] & ~remove) | add);
  };
  for (const LaterChars& later : kLaterChars)
    for (char32_t c = later.first; c <= later.last; ++c) of[c] |= later_classes(later.category);
  change(kNumbersOfUnicode17, kNumeric, 0);
  change(kPunctuationAfterUnicode8, 0, kPunctuation);
  change(kPunctuationOnlyUnicode8, kPunctuation, 0);
  change(kAccentsAfterUnicode8, 0, kAccent);
  change(kAccentsOnlyUnicode8, kAccent, 0);
  change(kControlsAfterUnicode8, 0, kControl);
  change(kMarksAfterUnicode9, 0, kMark);
  change(kMarksOnlyUnicode9, kMark, 0);
  change(kIdeographBlocks, kIdeograph, 0);
  for (const char c : {'\r', '\n'}) of[static_cast<size_t>(c)] |= kNewLine;
}

const uint16_t* class_table() {
  static const ClassTable table;
  return table.of.data();
}

}  // namespace detail

void append_utf8(std::string& out, char32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    tail(12), tail(6), tail(0);
  }
}

std::string utf8(char32_t c) {
  std::string out;
  append_utf8(out, c);
  return out;
}

int64_t count_chars(std::string_view text) { return std::count_if(text.begin(), text.end(), starts_char); }

bool is_ascii(std::string_view text) { return ascii_prefix(text, 0) == text.size(); }

std::string repaired_utf8(std::string_view text) {
  std::string out;
  for (size_t bad = 0;;) {
    const size_t at = find_bad_utf8(text, &bad);
    out.append(text.substr(0, at));
    if (at == text.npos) return out;
    append_utf8(out, kReplacement);
    text.remove_prefix(at + bad);
  }
}

char32_t lower(char32_t c) {
  if (c == kDottedCapitalI) return 'i';
  for (const Lower& latest : kLowercaseOfUnicode17)
    if (c >= latest.first && c <= latest.last) return static_cast<char32_t>(static_cast<int>(c) + latest.shift);
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

void decompose(char32_t c, bool compatible, std::vector<char32_t>& out) {
  out.assign(1, c);
  if (c < 0xA0 || among(kDecompositionsAfterUnicode9, c)) return;
  utf8proc_int32_t parts[32];  // the longest decomposition has 18 characters
  int boundary = 0;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 32, static_cast<utf8proc_option_t>(options), &boundary);
  if (count > 0 && count <= 32) out.assign(parts, parts + count);
}

int combining_class(char32_t c) {
  if (c < 0x300) return 0;
  const int order = utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
  return order != 0 && among(kOrderedAfterUnicode9, c) ? 0 : order;
}

char32_t compose_pair(char32_t a, char32_t b) {
  utf8proc_int32_t pair[] = {static_cast<utf8proc_int32_t>(a), static_cast<utf8proc_int32_t>(b)};
  constexpr auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  if (utf8proc_normalize_utf32(pair, 2, options) != 1) return 0;
  const auto one = static_cast<char32_t>(pair[0]);
  return among(kDecompositionsAfterUnicode9, one) ? 0 : one;
}

bool breaks_cluster(char32_t a, char32_t b, int& state) {
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(a), static_cast<utf8proc_int32_t>(b), &state);
}

}  // namespace heed::text
