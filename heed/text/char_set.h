// Sets of characters as sorted, disjoint, non-adjacent ranges.
#pragma once

#include <vector>

#include "heed/core/api.h"

namespace HEED_API heed {
namespace text {

struct Range {
  char32_t first, last;
  bool operator==(const Range&) const = default;
};
using CharSet = std::vector<Range>;

CharSet char_set(std::vector<Range> ranges);  // from unsorted, possibly overlapping ranges
CharSet union_of(CharSet a, const CharSet& b);
CharSet complement(const CharSet& set);  // within all code points
CharSet intersection_of(const CharSet& a, const CharSet& b);

}  // namespace text
}  // namespace heed
