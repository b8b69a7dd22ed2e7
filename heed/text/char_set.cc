#include "heed/text/char_set.h"

#include <algorithm>

namespace heed::text {

CharSet char_set(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  CharSet out;
  for (const Range& range : ranges) {
    if (!out.empty() && range.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, range.last);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

CharSet union_of(CharSet a, const CharSet& b) {
  a.insert(a.end(), b.begin(), b.end());
  return char_set(std::move(a));
}

CharSet complement(const CharSet& set) {
  constexpr char32_t end = 0x110000;
  CharSet out;
  char32_t next = 0;
  for (const Range& range : set) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next < end) out.push_back({next, end - 1});
  return out;
}

CharSet intersection_of(const CharSet& a, const CharSet& b) {
  CharSet out;
  for (auto i = a.begin(), k = b.begin(); i != a.end() && k != b.end(); i->last < k->last ? ++i : ++k) {
    const char32_t first = std::max(i->first, k->first), last = std::min(i->last, k->last);
    if (first <= last) out.push_back({first, last});
  }
  return out;
}

}  // namespace heed::text
