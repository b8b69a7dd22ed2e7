#include "heed/cli/print_evaluation.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "heed/cli/display_text.h"
#include "heed/text/unicode.h"

namespace heed::cli {
namespace {

constexpr size_t kMaxShownClassWidth = 32, kShownClasses = 200;

std::string readable(const std::string& name, double value) {
  if (name.ends_with("accuracy") || name == "top5" || name == "exact") return fixed_number(100 * value, 2) + '%';
  return fixed_number(value, name == "bleu" || name == "chrf" || name == "perplexity" ? 2 : 4);
}

int64_t widest_of(const Json& names, size_t count) {
  int64_t widest = 5;
  for (size_t i = 0; i < count; ++i)
    widest = std::max(widest, text::count_chars(display_text(names[i].get<std::string>(), kMaxShownClassWidth)));
  return widest;
}

// For many classes, instead of a confusion matrix that would not fit a screen.
void print_mistakes(const Json& detail) {
  std::cout << "\ncount  truth -> guess\n";
  for (const Json& each : detail.at("most_confused"))
    std::cout << std::setw(5) << each.at("count").get<int64_t>() << "  "
              << display_text(each.at("truth").get<std::string>(), kMaxShownClassWidth) << " -> "
              << display_text(each.at("guess").get<std::string>(), kMaxShownClassWidth) << '\n';
}

}  // namespace

std::string fixed_number(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

void print_metrics(const Metrics& figures) {
  size_t width = 18;
  for (const auto& [name, value] : figures) width = std::max(width, name.size() + 1);
  for (const auto& [name, value] : figures) {
    std::string label = name;
    std::replace(label.begin(), label.end(), '_', ' ');
    std::cout << padded(label, static_cast<int64_t>(width)) << std::setw(10) << readable(name, value) << '\n';
  }
}

void print_classes(const Json& detail) {
  Json names = Json::array();
  for (const Json& each : detail.at("per_class")) names.push_back(each.at("class"));
  const size_t count = std::min(names.size(), kShownClasses);
  const int64_t widest = widest_of(names, count);
  std::cout << '\n' << padded("class", widest) << "  precision  recall      f1   count\n";
  for (size_t i = 0; i < count; ++i) {
    const Json& each = detail.at("per_class")[i];
    std::cout << padded(display_text(each.at("class").get<std::string>(), kMaxShownClassWidth), widest) << std::setw(11)
              << fixed_number(each.at("precision").get<double>(), 4) << std::setw(8) << fixed_number(each.at("recall").get<double>(), 4)
              << std::setw(8) << fixed_number(each.at("f1").get<double>(), 4) << std::setw(8) << each.at("count").get<int64_t>() << '\n';
  }
  const auto all = detail.at("class_count").get<size_t>();
  if (count < all) std::cout << "... and " << all - count << " more classes; --json lists " << names.size() << " of them\n";
}

void print_confusion(const Json& detail) {
  if (!detail.contains("confusion")) return print_mistakes(detail);
  const Json& classes = detail.at("classes");
  const int64_t name_width = std::max<int64_t>(widest_of(classes, classes.size()) + 5, 13);
  size_t column = std::to_string(classes.size()).size();
  for (const Json& row : detail.at("confusion"))
    for (const Json& count : row) column = std::max(column, std::to_string(count.get<int64_t>()).size());
  const int width = static_cast<int>(column) + 2;
  std::cout << '\n' << padded("truth \\ guess", name_width);
  for (size_t i = 0; i < classes.size(); ++i) std::cout << std::setw(width) << i;
  std::cout << '\n';
  for (size_t i = 0; i < classes.size(); ++i) {
    std::cout << padded(std::to_string(i) + ' ' + display_text(classes[i].get<std::string>(), kMaxShownClassWidth), name_width);
    for (const Json& count : detail.at("confusion")[i]) std::cout << std::setw(width) << count.get<int64_t>();
    std::cout << '\n';
  }
}

}  // namespace heed::cli
