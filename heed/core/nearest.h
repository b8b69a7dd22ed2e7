// "Did you mean": finds the known name closest to what the user typed.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

// Edit distance: letters to insert, delete or replace, or neighbours to swap, to turn a into b (Levenshtein 1966, Damerau 1964).
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> above, before, row(b.size() + 1);  // distances from a[0, i - 2), a[0, i - 1), a[0, i) to every prefix of b
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    above = std::exchange(before, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j - 1] + (a[i - 1] != b[j - 1]), before[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], above[j - 2] + 1);
    }
  }
  return row.back();
}

// The nearest of `names`, or an empty string if none is close: at most a third of the letters may differ.
inline std::string nearest(std::string_view typed, const std::vector<std::string>& names) {
  std::string best;
  size_t distance = std::max<size_t>(typed.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    const size_t changes = edit_distance(typed, name);
    if (changes < distance) {
      distance = changes;
      best = name;
    }
  }
  return best;
}

// The end of an error message: "; did you mean 'x'?" or nothing.
inline std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names) {
  const std::string name = nearest(typed, names);
  return name.empty() ? "" : "; did you mean '" + name + "'?";
}

}  // namespace heed
