// Which pairs of tokens masks let through: for counting work (core/work_count.h).
#include "heed/attention/attention_flops.h"

#include <algorithm>
#include <numeric>

#include "heed/attention/attention_kernels.h"
#include "heed/attention/scalar_terms.h"

namespace heed {
namespace {

// Keys that one query sees.
int64_t visible_keys(const ScoreArgs& a, const TermArgs* masks, int count, const ScoreRow& row) {
  const ScoreBlock x{row.b, row.h, row.i, row.i + 1, 0, a.sizes.M, row.first};
  KeyRange seen{0, a.sizes.M};
  for (int n = 0; n < count; ++n) {
    const KeyRange range = visit_term(masks[n], [&](const auto& t) { return reach(t, x); });
    seen = {std::max(seen.first, range.first), std::min(seen.end, range.end)};
  }
  int64_t keys = 0;
  for (int64_t j = seen.first; j < seen.end; ++j)
    keys += std::all_of(masks, masks + count, [&](const TermArgs& mask) { return scalar::term_keeps(mask, row, j); });
  return keys;
}

using Ranges = decltype(VisibleKeys::ranges);

Ranges in_both(const Ranges& a, const Ranges& b) {
  Ranges out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const auto both = std::pair(std::max(a[i].first, b[j].first), std::min(a[i].second, b[j].second));
    if (both.first < both.second) out.push_back(both);
    ++(a[i].second < b[j].second ? i : j);
  }
  return out;
}

// The number of j in [first, end) with j - i a multiple of step.
int64_t count_every(std::pair<int64_t, int64_t> range, int64_t i, int64_t step) {
  const auto [begin, end] = range;
  const int64_t first = begin + ((i - begin) % step + step) % step;
  return first < end ? (end - 1 - first) / step + 1 : 0;
}

// A mask that does not say which keys it keeps is asked about each.
VisibleKeys visible_to(const Term& mask, int64_t i, int64_t N) {
  return std::visit(
      [&](const auto& t) -> VisibleKeys {
        if constexpr (requires { t.visible(i, N); }) return t.visible(i, N);
        const TermArgs args = term_args(mask);
        VisibleKeys out;
        for (int64_t j = 0; j < N; ++j)
          if (scalar::term_keeps(args, {0, 0, i}, j)) out.ranges.emplace_back(j, j + 1);
        return out;
      },
      mask);
}

}  // namespace

int64_t visible_pairs(const std::vector<Term>& masks, int64_t N) {
  constexpr int64_t most_ranges = int64_t{1} << 20;
  int64_t pairs = 0, ranges = 1;
  for (const Term& mask : masks) ranges = std::max(ranges, std::ssize(visible_to(mask, N / 2, N).ranges));
  check(N <= most_ranges / ranges, "cost: masks of ", N, " tokens are too long to count their pairs, expected at most ",
        most_ranges / ranges);
  for (int64_t i = 0; i < N; ++i) {
    VisibleKeys seen{{{0, N}}};
    for (const Term& mask : masks) {
      const VisibleKeys own = visible_to(mask, i, N);
      seen = {in_both(seen.ranges, own.ranges), std::min(std::lcm(seen.step, own.step), std::max<int64_t>(N, 1))};
    }
    for (const auto& range : seen.ranges) pairs += count_every(range, i, seen.step);
  }
  return pairs;
}

int64_t ScoreArgs::visible_pairs() const {
  const AttentionSizes& z = sizes;
  const bool readable = device.kind == Device::Kind::cpu && !DryRun::newest();
  TermArgs masks[kMaxTerms];
  int count = 0;
  bool same_for_all = true;  // heads and items
  for (const TermArgs& term : terms)
    visit_term(term, [&]<class T>(const T&) {
      if (!kIsMask<T> || (kReadsMask<T> && !readable)) return;
      masks[count++] = term;
      same_for_all = same_for_all && !kReadsMask<T>;
    });
  const int64_t maps = z.B * z.H;
  if (count == 0) return maps * z.N * z.M;
  int64_t pairs = 0;
  for (int64_t map = 0; map < (same_for_all ? std::min<int64_t>(maps, 1) : maps); ++map)
    for (int64_t i = 0; i < z.N; ++i) pairs += visible_keys(*this, masks, count, {map / z.H, map % z.H, z.first_query + i, z.first_query});
  return same_for_all ? maps * pairs : pairs;
}

int64_t ScoreArgs::score_width() const {
  int64_t width = beta != 0 ? sizes.D : 0;
  for (const TermArgs& term : terms)
    if (term.kind == TermKind::relative_keys) width += term.relative_keys.width;
  return width;
}

}  // namespace heed
