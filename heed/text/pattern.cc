#include "heed/text/pattern.h"

#include <algorithm>
#include <ctime>
#include <optional>

#include <memory>
#include <new>
#include "heed/text/expression.h"
#include "heed/text/pcre2.h"

namespace heed::text {
namespace {

std::string message_of(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// Per-thread PCRE2 state; creating it costs more than most matches.
struct Scratch {
  Pcre2<pcre2_match_data> data{pcre2_match_data_create(1, nullptr)};
  Pcre2<pcre2_match_context> context{pcre2_match_context_create(nullptr)};
  Pcre2<pcre2_jit_stack> stack{pcre2_jit_stack_create(size_t{32} << 10, size_t{16} << 20, nullptr)};

  Scratch() {
    if (!data || !context || !stack) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), 10'000'000);  // steps of one match: bounds exponential backtracking
    pcre2_set_heap_limit(context.get(), 512 << 10);    // KiB
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// PCRE2 limits the steps of one match only; an expression may still fail after many steps at each of many positions. This limits the
// time of all matches in a text to half a second plus forty times what a usual expression takes.
class TimeBudget {
 public:
  explicit TimeBudget(size_t bytes) : end_(thread_seconds() + 0.5 + 2e-6 * static_cast<double>(bytes)) {}
  bool spent() const { return thread_seconds() > end_; }

 private:
  double end_;
};

class Regex {
 public:
  Regex(std::string expression, std::string source) : expression_(std::move(expression)), source_(std::move(source)) {
    int error = 0;
    PCRE2_SIZE at = 0;
    const std::string translated = pcre2_expression(expression_, source_);
    // Ruby's ^ and $ match at line boundaries.
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT, &error, &at,
                              nullptr));
    if (error == PCRE2_ERROR_HEAP_FAILED) throw std::bad_alloc();
    check<FileError>(code_ != nullptr, source_, ": found the expression ", in_quotes(expression_),
                     ", expected one that PCRE2 understands: ", message_of(error));
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // on failure PCRE2 falls back to its interpreter
  }

  void find(std::string_view text, std::vector<Span>& matches) const {
    thread_local const Scratch scratch;
    std::optional<TimeBudget> budget;  // reading the clock costs as much as a match
    // Start positions tried per call: few in a long text, so that the clock is checked often enough.
    const size_t slice =
        expression_.find("\\G") == expression_.npos ? std::clamp<size_t>((size_t{1} << 26) / (text.size() + 1), 64, 65536) : text.size();
    size_t calls = 0;
    bool missed = false;
    for (size_t at = 0; at < text.size();) {
      if (++calls % 64 == 0 || missed) {
        if (!budget) budget.emplace(text.size());
        if (budget->spent()) give_up(at, text.size(), "it takes too long");
      }
      pcre2_set_offset_limit(scratch.context.get(), at + slice - 1);
      const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, scratch.data.get(), scratch.context.get());
      missed = found == PCRE2_ERROR_NOMATCH;
      if (missed) {
        for (at += slice; at < text.size() && !starts_char(text[at]);) ++at;
        continue;
      }
      if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
      if (found < 0) give_up(at, text.size(), message_of(found));
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.data.get());
      // \K in a lookaround can put the start after the end, or either before the position where the search started.
      if (ends[0] >= ends[1] || ends[0] < at)
        fail<FileError>(source_, ": the expression ", in_quotes(expression_), " moves backwards at byte ", at);
      matches.push_back({static_cast<uint32_t>(ends[0]), static_cast<uint32_t>(ends[1])});
      at = ends[1];
    }
  }

 private:
  [[noreturn]] void give_up(size_t at, size_t bytes, const std::string& why) const {
    fail<FileError>(source_, ": the expression ", in_quotes(expression_), " gave up at byte ", at, " of a text of ", bytes, ": ", why);
  }

  std::string expression_, source_;  // source_: file and key
  Pcre2<pcre2_code> code_;
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

Finder cl100k(int max_digits) {
  return [max_digits](std::string_view text, std::vector<Span>& matches) { scan_cl100k(text, max_digits, matches); };
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

Finder find_pattern(const JsonReader& json) {
  if (json.has("String")) return find_literal(json.text("String"));
  return find_regex(json.text("Regex"), json.place());
}

}  // namespace heed::text
