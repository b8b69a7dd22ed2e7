// Counts of common n-grams in two sequences, for BLEU and chrF, and what scores of texts need to find their words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct NgramCounts {
  int64_t written = 0, reference = 0, shared = 0;
  void add(const NgramCounts& more) { written += more.written, reference += more.reference, shared += more.shared; }
};

// `shared` counts an n-gram min(count in written, count in reference) times.
inline NgramCounts count_ngrams(std::span<const char32_t> written, std::span<const char32_t> reference, size_t n) {
  const auto sorted = [n](std::span<const char32_t> items) {
    std::vector<const char32_t*> out(items.size() >= n ? items.size() - n + 1 : 0);
    std::iota(out.begin(), out.end(), items.data());
    std::sort(out.begin(), out.end(), [n](auto* a, auto* b) { return std::lexicographical_compare(a, a + n, b, b + n); });
    return out;
  };
  const std::vector<const char32_t*> ours = sorted(written), theirs = sorted(reference);
  NgramCounts out{static_cast<int64_t>(ours.size()), static_cast<int64_t>(theirs.size()), 0};
  for (size_t i = 0, j = 0; i < ours.size() && j < theirs.size();) {
    const auto order = std::lexicographical_compare_three_way(ours[i], ours[i] + n, theirs[j], theirs[j] + n);
    out.shared += order == 0;
    i += order <= 0;
    j += order >= 0;
  }
  return out;
}

// White space as in Python's str.split: Unicode white space and the four ASCII separators.
bool splits_words(char32_t c);
std::string lowercased(std::string_view text);

}  // namespace heed
