// "Did you mean": the known name that is closest to what somebody typed.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// How many letters must be added, taken away or exchanged to turn a into b (Levenshtein 1966).
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances from a[0, i) to every beginning of b
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t exchanged = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({exchanged, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// The nearest of `names`, or an empty string when none is near: more than a third of the letters would have to change.
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
