// Classes like [^\p{L}\d&&[^a-z]], evaluated to sets of characters.
#include <optional>

#include "heed/io/file.h"
#include "heed/text/expression.h"
#include "heed/text/unicode.h"

namespace heed::text {
namespace {

class ClassReader {
 public:
  ClassReader(std::string_view text, size_t& i, const std::string& source) : text_(text), i_(i), source_(source) {}

  BracketClass read() {
    check<FileError>(++depth_ <= kMaxDepth, source_, ": found character classes ", kMaxDepth + 1, " deep, expected at most ", kMaxDepth);
    BracketClass out;
    ++i_;  // [
    if (out.negated = here('^'); out.negated) ++i_;
    std::vector<Range> ranges;
    std::optional<CharSet> left;  // left operand of the last &&
    const auto close = [&] {
      CharSet set = char_set(std::move(ranges));
      ranges.clear();
      return left ? intersection_of(*left, set) : set;
    };
    for (bool first = true; first || !here(']'); first = false) {
      check<FileError>(i_ < text_.size(), source_, ": found the expression ", in_quotes(text_), ", expected a ] after each [");
      if (text_.substr(i_, 2) == "&&") {
        i_ += 2;
        left = close();
      } else {
        read_item(ranges);
      }
    }
    ++i_;  // ]
    --depth_;
    out.chars = close();
    return out;
  }

 private:
  static constexpr int kMaxDepth = 16;

  bool here(char c) const { return i_ < text_.size() && text_[i_] == c; }

  // One character, a range, or a class.
  void read_item(std::vector<Range>& ranges) {
    const auto add = [&](const CharSet& set) { ranges.insert(ranges.end(), set.begin(), set.end()); };
    if (here('[') && read_posix(ranges)) return;
    if (here('[')) {
      const BracketClass inner = read();
      return add(inner.negated ? complement(inner.chars) : inner.chars);
    }
    const std::optional<char32_t> first = read_char(ranges);
    if (!first) return;
    const bool range =
        here('-') && i_ + 1 < text_.size() && text_[i_ + 1] != ']' && text_[i_ + 1] != '[' && text_.substr(i_ + 1, 2) != "&&";
    if (!range) return ranges.push_back({*first, *first});
    ++i_;
    const std::optional<char32_t> last = read_char(ranges);
    if (!last) {  // [a-\d]: the - is literal
      add({{'-', '-'}});
      return ranges.push_back({*first, *first});
    }
    check<FileError>(*first <= *last, source_, ": found a range from U+", static_cast<uint32_t>(*first), " to U+",
                     static_cast<uint32_t>(*last), " (decimal), expected an ascending range");
    ranges.push_back({*first, *last});
  }

  // [:name:] or [:^name:]
  bool read_posix(std::vector<Range>& ranges) {
    const size_t end = text_.find(":]", i_);
    if (text_.substr(i_, 2) != "[:" || end == text_.npos || end - i_ > 20) return false;
    std::string_view name = text_.substr(i_ + 2, end - i_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != name.npos) return false;
    CharSet set = chars_of_property(name, true, source_);
    if (negated) set = complement(set);
    ranges.insert(ranges.end(), set.begin(), set.end());
    i_ = end + 2;
    return true;
  }

  // A single character; none if it was an escape for a set, which is added to `ranges`.
  std::optional<char32_t> read_char(std::vector<Range>& ranges) {
    if (!here('\\') || i_ + 1 >= text_.size()) return next_char(text_, i_);
    ++i_;
    const char letter = text_[i_];
    if (letter == 'x' || letter == 'u') return read_code_point(text_, i_, source_);
    if (const CharSet set = letter == 'p' || letter == 'P' ? read_property(text_, i_, source_) : chars_of_escape(letter); !set.empty()) {
      if (letter != 'p' && letter != 'P') ++i_;
      ranges.insert(ranges.end(), set.begin(), set.end());
      return std::nullopt;
    }
    if (letter >= '0' && letter <= '7') {
      char32_t value = 0;
      for (int digits = 0; digits < 3 && i_ < text_.size() && text_[i_] >= '0' && text_[i_] <= '7'; ++digits)
        value = value * 8 + static_cast<char32_t>(text_[i_++] - '0');
      return value;
    }
    constexpr std::string_view letters = "tnrfvaeb", meanings = "\t\n\r\f\v\a\x1B\b";
    const size_t index = letters.find(letter);
    if (index == letters.npos) return next_char(text_, i_);
    ++i_;
    return static_cast<char32_t>(meanings[index]);
  }

  std::string_view text_;
  size_t& i_;
  const std::string& source_;
  int depth_ = 0;
};

}  // namespace

BracketClass read_class(std::string_view text, size_t& i, const std::string& source) { return ClassReader(text, i, source).read(); }

CharSet read_property(std::string_view text, size_t& i, const std::string& source) {
  const bool upper = text[i] == 'P';
  if (text.substr(i + 1, 1) != "{") return {};
  const size_t end = text.find('}', i);
  check<FileError>(end != text.npos, source, ": found ", in_quotes(text.substr(i - 1), 40), ", expected a } after the property name");
  std::string_view name = text.substr(i + 2, end - i - 2);
  const bool caret = name.starts_with('^');
  if (caret) name.remove_prefix(1);
  i = end + 1;
  CharSet set = chars_of_property(name, false, source);
  return upper != caret ? complement(set) : set;
}

char32_t read_code_point(std::string_view text, size_t& i, const std::string& source) {
  const size_t begin = i - 1;
  const bool braced = text.substr(i, 2) == "x{";
  const size_t max_digits = braced ? 8 : text[i] == 'u' ? 4 : 2;
  i += braced ? 2 : 1;
  char32_t value = 0;
  size_t digits = 0;
  for (; digits < max_digits && i < text.size(); ++digits, ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    value = value << 4 | static_cast<char32_t>(digit);
  }
  const bool closed = !braced || text.substr(i, 1) == "}";
  if (braced && closed) ++i;
  check<FileError>(digits > 0 && closed && value < 0x110000 && (value < 0xD800 || value > 0xDFFF), source, ": found ",
                   in_quotes(text.substr(begin, i - begin), 40), ", expected a valid code point");
  return value;
}

}  // namespace heed::text
