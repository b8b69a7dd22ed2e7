// Hand-written scanners for two families of expressions; alternatives are tried in the order of the expressions.
#include <cstring>

#include "heed/text/pattern.h"

namespace heed::text {
namespace {

struct Scanner {
  std::string_view text;
  size_t at = 0;

  bool done(size_t i) const { return i >= text.size(); }
  uint16_t classes(size_t i) const { return done(i) ? uint16_t{0} : classes_of(char_at(text, i)); }
  size_t after(size_t i) const { return i + char_bytes(text[i]); }

  // The end of the run from i of characters that have one of the classes `any` (run_of), or none of `none` (run_without).
  size_t run_of(size_t i, int any) const {
    while (!done(i)) {
      size_t next = i;
      if (!(classes_of(next_char(text, next)) & any)) break;
      i = next;
    }
    return i;
  }
  size_t run_without(size_t i, int none) const {
    while (!done(i)) {
      size_t next = i;
      if (classes_of(next_char(text, next)) & none) break;
      i = next;
    }
    return i;
  }
  // \s+(?!\S)|\s+ at a space i: all spaces at the end of the text, else all but the last.
  size_t spaces(size_t i) const {
    const size_t end = run_of(i, kSpace);
    if (done(end)) return end;
    const size_t last = char_before(text, end);
    return last > i ? last : end;
  }
};

// 's|'t|'re|'ve|'m|'ll|'d: its end, or 0. `any_case`: (?i:...), which also matches U+017F as s.
size_t contraction(const Scanner& scan, size_t i, bool any_case) {
  if (scan.text[i] != '\'' || i + 1 >= scan.text.size()) return 0;
  const auto letter = [&](size_t k) {
    const char c = k < scan.text.size() ? scan.text[k] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char a = letter(i + 1), b = letter(i + 2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return i + 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return i + 3;
  return any_case && scan.text.substr(i + 1).starts_with("\xC5\xBF") ? i + 3 : 0;
}

void emit(Scanner& scan, size_t end, std::vector<Span>& matches) {
  matches.push_back({static_cast<uint32_t>(scan.at), static_cast<uint32_t>(end)});
  scan.at = end;
}

}  // namespace

void scan_gpt2(std::string_view text, std::vector<Span>& matches) {
  constexpr int word = kSpace | kLetter | kNumber;
  for (Scanner scan{text}; !scan.done(scan.at);) {
    const size_t begin = scan.at;
    if (const size_t end = contraction(scan, begin, false)) {
      emit(scan, end, matches);
      continue;
    }
    const size_t first = text[begin] == ' ' ? begin + 1 : begin;  // " ?"
    const int kind = scan.classes(first) & word;
    if (scan.done(first) || (kind & kSpace)) {
      emit(scan, scan.spaces(begin), matches);
    } else {
      const int run = kind & (kLetter | kNumber);
      emit(scan, run ? scan.run_of(first, run) : scan.run_without(first, word), matches);
    }
  }
}

void scan_cl100k(std::string_view text, int max_digits, std::vector<Span>& matches) {
  constexpr int word = kSpace | kLetter | kNumber;
  for (Scanner scan{text}; !scan.done(scan.at);) {
    const size_t begin = scan.at;
    const int first = scan.classes(begin);
    size_t end = contraction(scan, begin, true);
    // [^\r\n\p{L}\p{N}]?\p{L}+
    if (!end && (first & kLetter)) end = scan.run_of(begin, kLetter);
    if (!end && !(first & (kNewLine | kLetter | kNumber)) && (scan.classes(scan.after(begin)) & kLetter))
      end = scan.run_of(scan.after(begin), kLetter);
    // \p{N}{1,3}
    if (!end && (first & kNumber)) {
      end = scan.after(begin);
      for (int i = 1; i < max_digits && (scan.classes(end) & kNumber); ++i) end = scan.after(end);
    }
    // ` ?[^\s\p{L}\p{N}]+[\r\n]*`
    const size_t mark = text[begin] == ' ' ? begin + 1 : begin;
    if (!end && !scan.done(mark) && !(scan.classes(mark) & word)) end = scan.run_of(scan.run_without(mark, word), kNewLine);
    // \s*[\r\n]+ and \s*[\r\n] match the same: up to the last newline of the whitespace
    if (!end) {
      const size_t spaces = scan.run_of(begin, kSpace);
      size_t line = spaces;
      while (line > begin && text[line - 1] != '\r' && text[line - 1] != '\n') line = char_before(text, line);
      if (line > begin) end = line;
      if (!end) end = scan.spaces(begin);
    }
    emit(scan, end, matches);
  }
}

}  // namespace heed::text
