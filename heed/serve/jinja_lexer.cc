#include "heed/serve/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace heed::serve {
namespace {

using TokenKind = JinjaToken::Kind;
constexpr std::string_view kSpaces = " \t\r\n";

class Lexer {
 public:
  Lexer(const std::string& text, const std::string& source) : text_(text), source_(source) {}

  std::vector<JinjaToken> run() {
    while (at_ < text_.size()) read_text(), read_tag();
    add(TokenKind::end);
    return std::move(tokens_);
  }

 private:
  void add(TokenKind kind, std::string text = {}, Json value = {}) { tokens_.push_back({kind, std::move(text), std::move(value), line_}); }
  [[noreturn]] void refuse(const std::string& what) const { fail<FileError>(source_, ": line ", line_, ": ", what); }
  void skip(size_t count) {
    line_ += std::count(text_.begin() + static_cast<int64_t>(at_), text_.begin() + static_cast<int64_t>(at_ + count), '\n');
    at_ += count;
  }
  bool here(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }

  void read_text() {
    size_t end = at_;
    for (;; ++end) {
      end = text_.find('{', end);
      if (end == std::string::npos || end + 1 >= text_.size()) {
        end = text_.size();
        break;
      }
      if (text_[end + 1] == '{' || text_[end + 1] == '%' || text_[end + 1] == '#') break;
    }
    std::string part = text_.substr(at_, end - at_);
    if (trim_) part.erase(0, std::min(part.find_first_not_of(kSpaces), part.size()));
    if (after_tag_ && part.starts_with('\n')) part.erase(0, 1);
    trim_ = after_tag_ = false;
    const bool cut = end + 2 < text_.size() && text_[end + 2] == '-';
    if (cut) part.erase(part.find_last_not_of(kSpaces) + 1);
    // Spaces before a tag at the beginning of a line.
    if (!cut && end + 1 < text_.size() && text_[end + 1] != '{') {
      const size_t last = part.find_last_not_of(" \t");
      if (last == std::string::npos ? (at_ == 0 || part.size() < end - at_) : part[last] == '\n') part.erase(last + 1);
    }
    if (!part.empty()) add(TokenKind::text, std::move(part));
    skip(end - at_);
  }

  void read_tag() {
    if (at_ >= text_.size()) return;
    const char kind = text_[at_ + 1];
    if (kind == '#') {
      const size_t end = text_.find("#}", at_);
      if (end == std::string::npos) refuse("a comment has no end, expected #}");
      trim_ = text_[end - 1] == '-';
      after_tag_ = true;
      return skip(end + 2 - at_);
    }
    const bool output = kind == '{';
    add(output ? TokenKind::open_output : TokenKind::open_tag);
    skip(at_ + 2 < text_.size() && text_[at_ + 2] == '-' ? 3 : 2);
    for (;;) {
      skip(std::min(text_.find_first_not_of(kSpaces, at_), text_.size()) - at_);
      if (at_ >= text_.size()) refuse(output ? "an expression has no end, expected }}" : "a tag has no end, expected %}");
      const std::string_view close = output ? "}}" : "%}";
      const bool trims = text_[at_] == '-' && text_.compare(at_ + 1, 2, close) == 0;
      if (trims || here(close)) {
        add(output ? TokenKind::close_output : TokenKind::close_tag);
        trim_ = trims;
        after_tag_ = !output;
        return skip(trims ? 3 : 2);
      }
      read_word();
    }
  }

  void read_word() {
    const char first = text_[at_];
    const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if (first == '"' || first == '\'') return read_string(first);
    size_t end = at_;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    if (std::isdigit(static_cast<unsigned char>(first))) {
      if (end < text_.size() && text_[end] == '.' && end + 1 < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end + 1]))) do
          ++end;
        while (end < text_.size() && is_letter(text_[end]));
      const std::string digits = text_.substr(at_, end - at_);
      const Json value = Json::parse(digits, nullptr, false);
      if (!value.is_number()) refuse("found " + in_quotes(digits, 20) + ", expected a number");
      add(TokenKind::number, digits, value);
      return skip(end - at_);
    }
    if (end > at_) {
      add(TokenKind::name, text_.substr(at_, end - at_));
      return skip(end - at_);
    }
    static constexpr std::array<std::string_view, 4> pairs{"==", "!=", "<=", ">="};
    for (const std::string_view each : pairs)
      if (here(each)) {
        add(TokenKind::symbol, std::string(each));
        return skip(2);
      }
    if (std::string_view("()[]{}.,:|+-*%~<>=/").find(first) == std::string_view::npos)
      refuse("found " + in_quotes(std::string(1, first)) + ", expected an expression");
    add(TokenKind::symbol, std::string(1, first));
    skip(1);
  }

  void read_string(char quote) {
    std::string out;
    size_t end = at_ + 1;
    for (; end < text_.size() && text_[end] != quote; ++end) {
      if (text_[end] == '\\' && end + 1 < text_.size()) {
        const char escaped = text_[++end];
        out += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped == 'r' ? '\r' : escaped;
      } else {
        out += text_[end];
      }
    }
    if (end >= text_.size()) refuse("a string has no end");
    add(TokenKind::string, std::move(out));
    skip(end + 1 - at_);
  }

  const std::string& text_;
  const std::string& source_;
  size_t at_ = 0;
  int64_t line_ = 1;
  bool trim_ = false, after_tag_ = false;
  std::vector<JinjaToken> tokens_;
};

}  // namespace

std::vector<JinjaToken> jinja_tokens(const std::string& text, const std::string& source) { return Lexer(text, source).run(); }

}  // namespace heed::serve
