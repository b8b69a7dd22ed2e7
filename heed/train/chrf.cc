// chrF2 with sacreBLEU's defaults: character 1- to 6-grams without white space, counted over the whole corpus; orders missing on either
// side are skipped.
#include <array>

#include "heed/text/unicode.h"
#include "heed/train/ngrams.h"
#include "heed/train/scores.h"

namespace heed {
namespace {

constexpr size_t kChrfOrders = 6;
constexpr double kBetaSquared = 4;  // beta = 2 weights recall

std::vector<char32_t> without_spaces(const std::string& line) {
  const std::string text = text::repaired_utf8(line);
  std::vector<char32_t> out;
  for (size_t at = 0; at < text.size();)
    if (const char32_t c = text::next_char(text, at); !splits_words(c)) out.push_back(c);
  return out;
}

}  // namespace

double chrf(std::span<const std::string> written, std::span<const std::string> references) {
  check(written.size() == references.size(), "chrf: found ", written.size(), " lines and ", references.size(),
        " references, expected the same number");
  std::array<NgramCounts, kChrfOrders> counts{};
  for (size_t line = 0; line < written.size(); ++line) {
    const std::vector<char32_t> ours = without_spaces(written[line]), theirs = without_spaces(references[line]);
    for (size_t n = 0; n < kChrfOrders; ++n) {
      const NgramCounts found = count_ngrams(ours, theirs, n + 1);
      if (found.reference > 0) counts[n].add(found);  // n-grams that the reference is too short for are not counted
    }
  }
  double precision = 0, recall = 0, orders = 0;
  for (const NgramCounts& count : counts) {
    if (count.written == 0) continue;
    precision += static_cast<double>(count.shared) / static_cast<double>(count.written);
    recall += static_cast<double>(count.shared) / static_cast<double>(count.reference);
    ++orders;
  }
  if (precision == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * (1 + kBetaSquared) * precision * recall / (kBetaSquared * precision + recall);
}

}  // namespace heed
