#include "heed/train/doubtful_labels.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heed/core/parse.h"

namespace heed {
namespace {

constexpr int64_t kFewRows = 10;       // too few to tell
constexpr size_t kManyFractions = 20;  // different labels; ratings such as 3.5 have fewer

}  // namespace

LabelDoubts doubts_about_labels(std::span<const LabelledText> rows) {
  std::map<std::string_view, int64_t> counts;
  for (const LabelledText& row : rows) ++counts[row.label];
  const int64_t once = std::count_if(counts.begin(), counts.end(), [](const auto& each) { return each.second == 1; });
  bool numbers = true, fractions = false;
  for (const auto& [label, count] : counts) {
    const std::optional<double> number = parse_number<double>(label);
    numbers = numbers && number;
    fractions = fractions || (number && std::isfinite(*number) && *number != std::trunc(*number));
  }
  const std::string different = std::to_string(counts.size()) + " different labels in " + std::to_string(rows.size()) + " rows";
  const std::string advice =
      std::string("choose another column with label_column=NAME") + (numbers ? ", or replace numbers by classes such as low and high" : "");
  if (std::ssize(rows) >= kFewRows && once * 2 > std::ssize(rows))
    return {.error = "found " + different + ", " + std::to_string(once) +
                     " of them in one row only; each label is a class, expected labels " + "that repeat; " + advice};
  if (numbers && fractions && counts.size() > kManyFractions)
    return {.warning = different + " are numbers with fractions, and each is a class of its own; if they are scores, " + advice};
  return {};
}

}  // namespace heed
