// BLEU with sacreBLEU's defaults: mteval-v13a tokens, exponential smoothing (Chen and Cherry 2014, method 3).
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
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

using Words = std::vector<char32_t>;
using NgramTable = std::map<std::u32string_view, int64_t>;

NgramTable ngrams_of(const Words& words, size_t n) {
  NgramTable out;
  for (size_t i = 0; i + n <= words.size(); ++i) ++out[{words.data() + i, n}];
  return out;
}

NgramCounts count_in_any(const Words& ours, const std::vector<Words>& references, size_t n) {
  NgramTable most;
  for (const Words& theirs : references)
    for (const auto& [ngram, count] : ngrams_of(theirs, n)) most[ngram] = std::max(most[ngram], count);
  NgramCounts out;
  for (const auto& [ngram, count] : ngrams_of(ours, n)) {
    out.written += count;
    if (const auto found = most.find(ngram); found != most.end()) out.shared += std::min(count, found->second);
  }
  return out;
}

int64_t closest_length(const Words& ours, const std::vector<Words>& references) {
  const auto key = [&](const Words& theirs) { return std::pair(std::abs(std::ssize(theirs) - std::ssize(ours)), std::ssize(theirs)); };
  const auto closest =
      std::min_element(references.begin(), references.end(), [&](const Words& a, const Words& b) { return key(a) < key(b); });
  return std::ssize(*closest);
}

}  // namespace

bool splits_words(char32_t c) { return (c >= 0x1c && c <= 0x1f) || text::is_space(c); }

std::string lowercased(std::string_view text) {
  const std::string valid = text::repaired_utf8(text);
  std::string out;
  for (size_t at = 0; at < valid.size();) text::append_utf8(out, text::lower(text::next_char(valid, at)));
  return out;
}

std::vector<std::string> tokens_13a(std::string_view line) {
  std::string text = text::repaired_utf8(line);
  while (!text.empty()) {  // before the "-\\n" rule below, which must not apply to the last newline
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
  std::vector<std::vector<std::string>> lists;
  for (const std::string& each : references) lists.push_back({each});
  return bleu_of_several(written, lists);
}

BleuScore bleu_of_several(std::span<const std::string> written, std::span<const std::vector<std::string>> references) {
  check(written.size() == references.size(), "bleu: found ", written.size(), " lines and ", references.size(),
        " references, expected the same number");
  std::array<NgramCounts, kBleuOrders> counts{};
  int64_t written_words = 0, reference_words = 0;
  for (size_t line = 0; line < written.size(); ++line) {
    std::unordered_map<std::string, char32_t> known;
    check(!references[line].empty(), "bleu: found no reference of line ", line + 1, ", expected at least one");
    const Words ours = numbered(tokens_13a(written[line]), known);
    std::vector<Words> theirs;
    for (const std::string& each : references[line]) theirs.push_back(numbered(tokens_13a(each), known));
    written_words += std::ssize(ours);
    reference_words += closest_length(ours, theirs);
    for (size_t n = 0; n < kBleuOrders; ++n) counts[n].add(count_in_any(ours, theirs, n + 1));
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
