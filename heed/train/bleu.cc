// BLEU with sacreBLEU's defaults: mteval-v13a tokens, exponential smoothing (Chen and Cherry 2014, method 3).
#include <array>
#include <cmath>
#include <unordered_map>

#include "heed/text/unicode.h"
#include "heed/train/ngrams.h"
#include "heed/train/scores.h"

namespace heed {
namespace {

constexpr size_t kBleuOrders = 4;

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }
bool is_set_apart(char c) {  // ASCII punctuation except apostrophe, comma, hyphen and period
  return c >= ' ' && c <= '~' && !is_digit(c) && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') && c != '\'' && c != '-' &&
         !is_point(c);
}

// Replaces every non-overlapping pair of adjacent bytes that satisfies `is` with the output of `write`. Working on bytes is safe: only
// ASCII is matched, so multi-byte characters stay intact.
template <class Is, class Write>
std::string with_pairs(const std::string& text, Is is, Write write) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (at + 1 < text.size() && is(text[at], text[at + 1])) {
      write(out, text[at], text[at + 1]);
      ++at;
    } else {
      out += text[at];
    }
  }
  return out;
}

// Word ids in order of first appearance.
std::vector<char32_t> numbered(const std::vector<std::string>& words, std::unordered_map<std::string, char32_t>& known) {
  std::vector<char32_t> out;
  for (const std::string& word : words) out.push_back(known.emplace(word, static_cast<char32_t>(known.size())).first->second);
  return out;
}

}  // namespace

bool splits_words(char32_t c) { return (c >= 0x1c && c <= 0x1f) || text::is_space(c); }

std::vector<std::string> tokens_13a(std::string_view line) {
  std::string text = text::repaired_utf8(line);
  while (!text.empty()) {  // before the "-\\n" rule below, which must not see a trailing newline
    const size_t last = text::char_before(text, text.size());
    if (!splits_words(text::char_at(text, last))) break;
    text.resize(last);
  }
  replace(text, "<skipped>", "");
  replace(text, "-\n", "");
  replace(text, "\n", " ");
  replace(text, "&quot;", "\"");
  replace(text, "&amp;", "&");
  replace(text, "&lt;", "<");
  replace(text, "&gt;", ">");
  std::string apart = " ";
  for (char c : text) {
    if (is_set_apart(c))
      apart += {' ', c, ' '};
    else
      apart += c;
  }
  apart += ' ';
  // Periods and commas are tokens unless between digits; so is a hyphen after a digit.
  apart = with_pairs(
      apart, [](char a, char b) { return !is_digit(a) && is_point(b); },
      [](std::string& out, char a, char b) {
        out += {a, ' ', b, ' '};
      });
  apart = with_pairs(
      apart, [](char a, char b) { return is_point(a) && !is_digit(b); },
      [](std::string& out, char a, char b) {
        out += {' ', a, ' ', b};
      });
  apart = with_pairs(
      apart, [](char a, char b) { return is_digit(a) && b == '-'; },
      [](std::string& out, char a, char b) {
        out += {a, ' ', b, ' '};
      });
  std::vector<std::string> words(1);
  for (size_t at = 0; at < apart.size();) {
    const size_t begin = at;
    if (!splits_words(text::next_char(apart, at)))
      words.back().append(apart, begin, at - begin);
    else if (!words.back().empty())
      words.emplace_back();
  }
  words.pop_back();  // `apart` ends with a space
  return words;
}

BleuScore bleu(std::span<const std::string> written, std::span<const std::string> references) {
  check(written.size() == references.size(), "bleu: found ", written.size(), " lines and ", references.size(),
        " references, expected the same number");
  std::array<NgramCounts, kBleuOrders> counts{};
  int64_t written_words = 0, reference_words = 0;
  for (size_t line = 0; line < written.size(); ++line) {
    std::unordered_map<std::string, char32_t> known;
    const std::vector<char32_t> ours = numbered(tokens_13a(written[line]), known), theirs = numbered(tokens_13a(references[line]), known);
    written_words += static_cast<int64_t>(ours.size());
    reference_words += static_cast<int64_t>(theirs.size());
    for (size_t n = 0; n < kBleuOrders; ++n) counts[n].add(count_ngrams(ours, theirs, n + 1));
  }
  BleuScore out{.bleu = 0, .brevity = 1, .precisions = std::vector<double>(kBleuOrders)};
  if (written_words < reference_words)
    out.brevity = written_words > 0 ? std::exp(1 - static_cast<double>(reference_words) / static_cast<double>(written_words)) : 0;
  if (counts[0].shared == 0) return out;  // then no longer n-grams match either
  double smooth = 1, logs = 0;
  for (size_t n = 0; n < kBleuOrders; ++n) {
    const auto total = static_cast<double>(counts[n].written), shared = static_cast<double>(counts[n].shared);
    if (total == 0) return out;  // a zero precision that is not smoothed makes the mean 0
    if (shared == 0) smooth *= 2;
    out.precisions[n] = shared == 0 ? 100 / (smooth * total) : 100 * shared / total;
    logs += std::log(out.precisions[n]);
  }
  out.bleu = out.brevity * std::exp(logs / kBleuOrders);
  return out;
}

}  // namespace heed
