#include "heed/text/expression.h"

#include <vector>

#include "heed/io/file.h"
#include "heed/text/pcre2.h"
#include "heed/text/unicode.h"

namespace heed::text {
namespace {

constexpr size_t kLongest = 64 << 10;            // bytes of an expression; published ones have a few hundred
constexpr size_t kLongestTranslated = 64 << 10;  // larger ones exceed PCRE2's limits, which takes it seconds to detect

class Translator {
 public:
  Translator(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  std::string translate() {
    while (i_ < text_.size()) {
      step();
      check<FileError>(out_.size() <= kLongestTranslated, source_, ": found an expression of ", text_.size(),
                       " bytes that is too large for PCRE2, expected fewer classes of characters");
    }
    return std::move(out_);
  }

 private:
  struct Mode {
    bool any_case = false, spaced = false;  // (?i), (?x)
  };
  struct Group {
    size_t begin;  // of its parenthesis in out_
    Mode outside;
  };

  bool follows(std::string_view what) const { return text_.substr(i_).starts_with(what); }
  void copy(size_t bytes) {
    out_.append(text_.substr(i_, bytes));
    i_ = std::min(i_ + bytes, text_.size());
  }
  void atom(std::string_view translated) {
    atom_ = out_.size();
    out_.append(translated);
  }

  void step() {
    const char c = text_[i_];
    if (c == '\\') return escape();
    if (c == '[') return bracket();
    if (c == '(') return open();
    if (c == ')') return close();
    if (c == '{' && interval()) return;
    if (c == '#' && mode_.spaced) return copy(std::min(text_.find('\n', i_), text_.size()) - i_);
    if (c != '*' && c != '+' && c != '?' && c != '|') atom_ = out_.size();
    copy(char_bytes(c));
  }

  void bracket() {
    const BracketClass found = read_class(text_, i_, source_);
    atom(mode_.any_case ? pcre2_ranges(found.chars, found.negated) : pcre2_class(found.negated ? complement(found.chars) : found.chars));
  }

  void escape() {
    const size_t begin = i_++;
    const char letter = i_ < text_.size() ? text_[i_] : '\0';
    const CharSet set = letter == 'p' || letter == 'P' ? read_property(text_, i_, source_) : chars_of_escape(letter);
    if (!set.empty()) {
      if (letter != 'p' && letter != 'P') ++i_;
      return atom(mode_.any_case ? "(?-i:" + pcre2_class(set) + ")" : pcre2_class(set));
    }
    if (letter == 'x' || letter == 'u') return atom(pcre2_ranges({single(read_code_point(text_, i_, source_))}, false));
    if (letter == 'b' || letter == 'B') {
      ++i_;
      const std::string word = pcre2_class(chars_of_escape('w'));
      return atom(letter == 'b' ? "(?-i:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))"
                                : "(?-i:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))");
    }
    if (letter == 'v' || letter == 'O') {
      ++i_;
      return atom(letter == 'v' ? "\\x0B" : "(?s:.)");
    }
    i_ = begin;
    atom_ = out_.size();
    copy(1);
    if (i_ < text_.size()) copy(char_bytes(text_[i_]));
  }
  static Range single(char32_t c) { return {c, c}; }

  void open() {
    if (follows("(?#")) return copy(std::min(text_.find(')', i_), text_.size() - 1) + 1 - i_);
    const Mode outside = mode_;
    const size_t begin = out_.size(), flags = i_ + 2, end = text_.find_first_not_of("imx-", flags);
    if (follows("(?") && end != text_.npos && end > flags && (text_[end] == ':' || text_[end] == ')')) {
      out_ += "(?";
      bool on = true;
      for (const char c : text_.substr(flags, end - flags)) {
        on = on && c != '-';
        if (c == 'i') mode_.any_case = on;
        if (c == 'x') mode_.spaced = on;
        out_ += c == 'm' ? 's' : c;  // Ruby's (?m) lets . match newlines
      }
      out_ += text_[end];
      i_ = end + 1;
      if (text_[end] == ')') return;  // applies until the end of the enclosing group
    } else {
      copy(follows("(?<=") || follows("(?<!") ? 4 : follows("(?") ? 3 : 1);
    }
    groups_.push_back({begin, outside});
  }

  void close() {
    if (!groups_.empty()) {
      atom_ = groups_.back().begin;
      mode_ = groups_.back().outside;
      groups_.pop_back();
    }
    copy(1);
  }

  // {n}, {n,}, {n,m} or {,m}. Unlike in PCRE2, a following + repeats it again rather than making it possessive, and ? after {n} makes
  // it optional rather than lazy.
  bool interval() {
    const size_t end = text_.find('}', i_);
    const std::string_view body = end == text_.npos ? "" : text_.substr(i_ + 1, end - i_ - 1);
    const size_t comma = body.find(',');
    if (body.find_first_not_of("0123456789,") != body.npos || body == "," || body.empty() ||
        (comma != body.npos && body.find(',', comma + 1) != body.npos))
      return false;
    out_.append(comma == 0 ? "{0" : "{").append(body).append("}");
    i_ = end + 1;
    const char next = i_ < text_.size() ? text_[i_] : '\0';
    if (next == '+' || (next == '?' && comma == body.npos)) {
      out_.insert(atom_, "(?:");
      out_ += ')';
      copy(1);
    }
    return true;
  }

  std::string_view text_;
  const std::string& source_;
  size_t i_ = 0;
  std::string out_;
  size_t atom_ = 0;  // start in out_ of what a following quantifier repeats
  Mode mode_;
  std::vector<Group> groups_;
};

}  // namespace

std::string pcre2_expression(std::string_view expression, const std::string& source) {
  check<FileError>(expression.size() <= kLongest, source, ": found an expression of ", expression.size(), " bytes, expected at most ",
                   kLongest);
  return Translator(expression, source).translate();
}

}  // namespace heed::text
