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

// Of masks that do not name the keys they keep, every key is checked.
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

// The term that arguments were made from, for masks that say which keys they keep.
Causal term_of(const CausalArgs& t) { return {t.offset}; }
Window term_of(const WindowArgs& t) { return {t.before, t.after, t.globals}; }
Chunks term_of(const ChunksArgs& t) { return {t.size, t.shift}; }
Dilated term_of(const DilatedArgs& t) { return {t.step}; }
GridWindow term_of(const GridWindowArgs& t) { return {t.rows, t.columns, t.width}; }
template <class T>
constexpr bool kHasTerm = requires(const T& t) {
  term_of(t);
};

// Of queries [first, first + N) and M keys. A query takes time for each of its ranges only.
int64_t pairs_by_ranges(const std::vector<Term>& masks, int64_t first, int64_t N, int64_t M) {
  constexpr int64_t most_ranges = int64_t{1} << 20;
  int64_t pairs = 0, ranges = 1;
  for (const Term& mask : masks) ranges = std::max(ranges, std::ssize(visible_to(mask, first + N / 2, M).ranges));
  check(N <= most_ranges / ranges, "cost: masks of ", N, " tokens are too long to count their pairs, expected at most ",
        most_ranges / ranges);
  for (int64_t i = first; i < first + N; ++i) {
    VisibleKeys seen{{{0, M}}};
    for (const Term& mask : masks) {
      const VisibleKeys own = visible_to(mask, i, M);
      seen = {in_both(seen.ranges, own.ranges), std::min(std::lcm(seen.step, own.step), std::max<int64_t>(M, 1))};
    }
    for (const auto& range : seen.ranges) pairs += count_every(range, i, seen.step);
  }
  return pairs;
}

// A causal mask alone: query i sees min(i + 1 + offset, M) keys.
int64_t causal_pairs(const Causal& mask, int64_t first, int64_t N, int64_t M) {
  const auto up_to = [&](int64_t end) {  // the sum over i < end of the keys seen, for i + 1 + offset from 0 to M
    const int64_t keys = std::clamp<int64_t>(end + mask.offset, 0, M), beyond = std::max<int64_t>(end + mask.offset - M, 0);
    return keys * (keys + 1) / 2 + beyond * M;
  };
  return up_to(first + N) - up_to(first);
}

}  // namespace

int64_t visible_pairs(const std::vector<Term>& masks, int64_t N) { return pairs_by_ranges(masks, 0, N, N); }

int64_t ScoreArgs::visible_pairs() const {
  const AttentionSizes& z = sizes;
  const bool readable = device.kind == Device::Kind::cpu && !DryRun::newest();
  TermArgs masks[kMaxTerms];
  std::vector<Term> described;  // masks that say which keys they keep
  int count = 0;
  bool same_for_all = true;  // heads and items
  for (const TermArgs& term : terms)
    visit_term(term, [&]<class T>(const T& t) {
      if (!kIsMask<T> || (kReadsMask<T> && !readable)) return;
      masks[count++] = term;
      same_for_all = same_for_all && !kReadsMask<T>;
      if constexpr (kHasTerm<T>) described.push_back(term_of(t));
    });
  const int64_t maps = z.B * z.H;
  if (count == 0) return maps * z.N * z.M;
  if (std::ssize(described) == count) {
    const auto* causal = count == 1 ? std::get_if<Causal>(&described[0]) : nullptr;
    return maps * (causal ? causal_pairs(*causal, z.first_query, z.N, z.M) : pairs_by_ranges(described, z.first_query, z.N, z.M));
  }
  int64_t pairs = 0;
  for (int64_t map = 0; map < (same_for_all ? std::min<int64_t>(maps, 1) : maps); ++map)
    for (int64_t i = 0; i < z.N; ++i) pairs += visible_keys(*this, masks, count, {map / z.H, map % z.H, z.first_query + i, z.first_query});
  return same_for_all ? maps * pairs : pairs;
}

int64_t ScoreArgs::score_width() const {
  int64_t width = beta != 0 ? sizes.D : 0;
  for (const TermArgs& term : terms)
    width += term.kind == TermKind::relative_keys      ? term.relative_keys.width
             : term.kind == TermKind::relative_keys_2d ? term.relative_keys_2d.depth
                                                       : 0;
  return width;
}

}  // namespace heed
