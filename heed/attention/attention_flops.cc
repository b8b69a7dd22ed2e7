// Which pairs of tokens masks let through: for counting work (core/work_count.h).
#include <algorithm>

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

}  // namespace

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
