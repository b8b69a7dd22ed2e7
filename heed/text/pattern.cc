#include "heed/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>

namespace heed::text {
namespace {

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

std::string message_of(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// What a match works with; making one costs more than most matches.
struct Scratch {
  Owned<pcre2_match_data> data{pcre2_match_data_create(1, nullptr)};
  Owned<pcre2_match_context> context{pcre2_match_context_create(nullptr)};
  Owned<pcre2_jit_stack> stack{pcre2_jit_stack_create(size_t{32} << 10, size_t{16} << 20, nullptr)};

  Scratch() {
    pcre2_set_match_limit(context.get(), 10'000'000);  // steps of one match: an expression that explodes must not hang the program
    pcre2_set_heap_limit(context.get(), 512 << 10);    // KiB
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

class Regex {
 public:
  Regex(std::string expression, const std::string& source) : expression_(std::move(expression)) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression_.data()), expression_.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr));
    check<FileError>(code_ != nullptr, source, ": found the expression ", in_quotes(expression_),
                     ", expected one that PCRE2 understands: ", message_of(error), " at byte ", at);
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // where it fails, the interpreter does the work
  }

  void find(std::string_view text, std::vector<Span>& matches) const {
    thread_local const Scratch scratch;
    for (size_t at = 0; at < text.size();) {
      const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, scratch.data.get(), scratch.context.get());
      if (found == PCRE2_ERROR_NOMATCH) return;
      if (found < 0)
        fail("encode: the expression ", in_quotes(expression_), " gave up at byte ", at, " of ", text.size(), ": ", message_of(found));
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.data.get());
      // \K in a look-around can put the begin behind the end, or either before the place where the search began.
      if (ends[0] >= ends[1] || ends[0] < at) fail("encode: the expression ", in_quotes(expression_), " moves backwards at byte ", at);
      matches.push_back({static_cast<uint32_t>(ends[0]), static_cast<uint32_t>(ends[1])});
      at = ends[1];
    }
  }

 private:
  std::string expression_;
  Owned<pcre2_code> code_;
};

constexpr std::string_view kAnyChar = R"([\s\S])";
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt2Grouped = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";

void find_chars(std::string_view text, std::vector<Span>& matches) {
  for (size_t i = 0, next = 0; i < text.size(); i = next) {
    next = i + char_bytes(text[i]);
    matches.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(next)});
  }
}

Finder cl100k(int longest_number) {
  return [longest_number](std::string_view text, std::vector<Span>& matches) { scan_cl100k(text, longest_number, matches); };
}

}  // namespace

Finder find_literal(std::string literal) {
  return [literal = std::move(literal)](std::string_view text, std::vector<Span>& matches) {
    if (literal.empty()) return;
    for (size_t at = text.find(literal); at != text.npos; at = text.find(literal, at + literal.size()))
      matches.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at + literal.size())});
  };
}

Finder find_regex(const std::string& expression, const std::string& source) {
  if (expression == kAnyChar) return find_chars;
  if (expression == kGpt2 || expression == kGpt2Grouped) return scan_gpt2;
  if (expression == kLlama3 || expression == kCl100k) return cl100k(3);
  if (expression == kQwen2) return cl100k(1);
  const auto regex = std::make_shared<const Regex>(expression, source);
  return [regex](std::string_view text, std::vector<Span>& matches) { regex->find(text, matches); };
}

Finder find_pattern(const JsonPart& json) {
  if (json.has("String")) return find_literal(json.text("String"));
  return find_regex(json.text("Regex"), json.place());
}

}  // namespace heed::text
