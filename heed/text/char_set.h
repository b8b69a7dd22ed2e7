// Sets of characters, as ranges in ascending order that do not touch each other.
#pragma once

#include <vector>

namespace heed::text {

struct Range {
  char32_t first, last;
  bool operator==(const Range&) const = default;
};
using CharSet = std::vector<Range>;

CharSet char_set(std::vector<Range> ranges);  // from ranges in any order, which may overlap
CharSet joined(CharSet a, const CharSet& b);
CharSet complement(const CharSet& set);  // of all code points
CharSet common(const CharSet& a, const CharSet& b);

}  // namespace heed::text
