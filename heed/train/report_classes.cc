// Report section of classifiers: confusion matrix, scores per class, calibration.
#include <algorithm>
#include <cmath>
#include <span>

#include "heed/io/markup.h"
#include "heed/train/report_draw.h"

namespace heed {
namespace {

constexpr size_t kMostClasses = 200;    // larger matrices are unreadable
constexpr size_t kMostWithCounts = 20;  // with a count in each cell
constexpr size_t kLongestLabel = 16;
constexpr size_t kWorstShown = 50, kBestShown = 10;  // rows of the table if there are more classes

std::string shortened(const std::string& label) {
  const std::vector<Letter> letters = letters_of(label);
  if (letters.size() <= kLongestLabel) return label;
  std::string out;
  for (size_t i = 0; i < kLongestLabel - 1; ++i) out += letters[i].bytes;
  return out + "…";
}

struct Confusion {
  std::vector<std::string> classes = {};
  std::vector<std::vector<double>> counts = {};  // rows: truth
};

// Empty if missing or not square.
Confusion confusion_in(const Json& detail) {
  Confusion out;
  for (const Json& name : list_in(detail, "classes")) out.classes.push_back(name.is_string() ? name.get<std::string>() : name.dump());
  for (const Json& row : list_in(detail, "confusion")) {
    out.counts.emplace_back();
    if (row.is_array())
      for (const Json& count : row) out.counts.back().push_back(count.is_number() ? count.get<double>() : 0);
    if (out.counts.back().size() != out.classes.size()) return {};
  }
  if (out.counts.size() != out.classes.size()) return {};
  return out;
}

std::string matrix_html(const Confusion& confusion) {
  const size_t C = confusion.classes.size();
  const bool counted = C <= kMostWithCounts;
  const double cell = counted ? std::clamp(360.0 / static_cast<double>(C), 30.0, 72.0) : C <= 50 ? 14 : 10;
  const double size = counted ? 12 : cell - 2, letter = 0.6 * size;
  size_t longest = 0;
  for (const std::string& name : confusion.classes) longest = std::max(longest, letters_of(shortened(name)).size());
  const double label = static_cast<double>(longest) * letter + 10, side = cell * static_cast<double>(C), all = label + side + 2;
  std::string cells, labels;
  for (size_t i = 0; i < C; ++i) {
    const double at = label + cell * static_cast<double>(i), middle = at + cell / 2;
    const std::string name = escape_markup(shortened(confusion.classes[i]));
    labels += "<text x=\"" + fixed(label - 6, 1) + "\" y=\"" + fixed(middle, 1) + "\" text-anchor=\"end\">" + name + "</text>";
    labels += "<text x=\"" + fixed(middle, 1) + "\" y=\"" + fixed(label - 6, 1) + "\" transform=\"rotate(-90 " + fixed(middle, 1) + " " +
              fixed(label - 6, 1) + ")\">" + name + "</text>";
    double row = 0;
    for (double count : confusion.counts[i]) row += count;
    for (size_t j = 0; j < C; ++j) {
      const double count = confusion.counts[i][j], share = row > 0 ? count / row : 0;
      if (!(count > 0)) continue;  // background colour
      const double x = label + cell * static_cast<double>(j), strength = i == j ? 0.15 + 0.85 * share : std::min(1.0, 0.12 + 1.6 * share);
      cells += "<g><title>" + escape_markup(confusion.classes[i]) + " predicted as " + escape_markup(confusion.classes[j]) + ": " +
               fixed(count, 0) + " (" + figure_text("recall", share) + ")</title><rect class=\"" + (i == j ? "hit" : "miss") + "\" x=\"" +
               fixed(x, 1) + "\" y=\"" + fixed(at, 1) + "\" width=\"" + fixed(cell - 1, 1) + "\" height=\"" + fixed(cell - 1, 1) +
               "\" fill-opacity=\"" + fixed(strength, 3) + "\"/>";
      if (counted)
        cells += "<text class=\"" + std::string(strength > 0.55 ? "over" : "count") + "\" x=\"" + fixed(x + cell / 2, 1) + "\" y=\"" +
                 fixed(middle, 1) + "\" text-anchor=\"middle\">" + (count < 10000 ? fixed(count, 0) : count_text(count)) + "</text>";
      cells += "</g>";
    }
  }
  const std::string style = "style=\"min-width:" + fixed(counted ? std::min(all, 180 + 14 * static_cast<double>(C)) : all, 0) +
                            "px;max-width:" + fixed(1.4 * all, 0) + "px\"";
  return std::string(kScrollingCard) +
         "<h3>Confusion</h3><p class=\"faint\">Rows are the truth, columns the predictions; shades are "
         "fractions "
         "of a row.</p><p class=\"legend\"><span class=\"key\"><i class=\"box hit\"></i>right</span><span class=\"key\"><i class=\"box "
         "miss\"></i>wrong</span></p><svg class=\"matrix\" viewBox=\"0 0 " +
         fixed(all, 0) + " " + fixed(all, 0) + "\" " + style + " font-size=\"" + fixed(size, 1) +
         "\" role=\"img\" aria-label=\"Confusion matrix of " + std::to_string(C) + " classes\"><rect class=\"ground\" x=\"" +
         fixed(label, 1) + "\" y=\"" + fixed(label, 1) + "\" width=\"" + fixed(side - 1, 1) + "\" height=\"" + fixed(side - 1, 1) + "\"/>" +
         cells + labels + "</svg></div>\n";
}

struct Mistake {
  std::string truth, guess;
  double count, share;  // share: of the samples of the true class
};

// From the evaluation; for older runs, computed from the matrix.
std::vector<Mistake> mistakes_in(const Json& detail, const Confusion& confusion) {
  std::vector<Mistake> out;
  for (const Json& each : list_in(detail, "most_confused"))
    out.push_back({text_in(each, "truth"), text_in(each, "guess"), number_in(each, "count"), number_in(each, "share")});
  if (!out.empty()) return out;
  for (size_t i = 0; i < confusion.classes.size(); ++i) {
    double row = 0;
    for (double count : confusion.counts[i]) row += count;
    for (size_t j = 0; j < confusion.classes.size(); ++j)
      if (const double count = confusion.counts[i][j]; i != j && count > 0)
        out.push_back({confusion.classes[i], confusion.classes[j], count, count / row});
  }
  std::stable_sort(out.begin(), out.end(), [](const Mistake& a, const Mistake& b) { return a.count > b.count; });
  return out;
}

std::string mistakes_html(const std::vector<Mistake>& mistakes) {
  if (mistakes.empty()) return "";
  std::string rows;
  for (size_t k = 0; k < std::min<size_t>(mistakes.size(), 6); ++k)
    rows += "<tr><td>" + escape_markup(mistakes[k].truth) + "</td><td>" + escape_markup(mistakes[k].guess) + "</td><td class=\"number\">" +
            fixed(mistakes[k].count, 0) + "</td><td class=\"number\">" + figure_text("recall", mistakes[k].share) + "</td></tr>";
  return std::string(kScrollingCard) +
         "<h3>Most frequent mistakes</h3><table><thead><tr><th scope=\"col\">truth</th><th "
         "scope=\"col\">predicted "
         "as</th>"
         "<th scope=\"col\" class=\"number\">count</th><th scope=\"col\" class=\"number\">of the class</th></tr></thead><tbody>" +
         rows + "</tbody></table></div>\n";
}

std::string bar_cell(double value) {
  return "<td class=\"number\"><span class=\"value\">" + figure_text("recall", value) +
         "</span><span class=\"bar\"><i style=\"width:" + fixed(100 * std::clamp(value, 0.0, 1.0), 1) + "%\"></i></span></td>";
}

struct ClassRow {
  double f1 = 0;
  std::string html = {};
};

std::string class_table(std::span<const ClassRow> rows) {
  std::string out =
      "<table class=\"bars\"><thead><tr><th scope=\"col\">class</th><th scope=\"col\" class=\"number\">precision</th><th scope=\"col\" "
      "class=\"number\">recall</th><th scope=\"col\" class=\"number\">F1</th><th scope=\"col\" "
      "class=\"number\">samples</th></tr></thead><tbody>";
  for (const ClassRow& row : rows) out += row.html;
  return out + "</tbody></table>";
}

// All classes, or the worst and the best if there are many.
std::string per_class_html(const Json& detail) {
  std::vector<ClassRow> rows;
  for (const Json& entry : list_in(detail, "per_class")) {
    const double f1 = number_in(entry, "f1");
    rows.push_back({f1, "<tr data-value=\"" + fixed(f1, 6) + "\"><th scope=\"row\">" + escape_markup(text_in(entry, "class")) + "</th>" +
                            bar_cell(number_in(entry, "precision")) + bar_cell(number_in(entry, "recall")) + bar_cell(f1) +
                            "<td class=\"number\">" + count_text(number_in(entry, "count")) + "</td></tr>"});
  }
  if (rows.empty()) return "";
  if (rows.size() <= kWorstShown + kBestShown)
    return "<div class=\"card tall\" tabindex=\"0\"><h3>Every class <button type=\"button\" class=\"sort\" aria-pressed=\"false\">worst "
           "first</button></h3>" +
           class_table(rows) + "</div>\n";
  std::stable_sort(rows.begin(), rows.end(), [](const ClassRow& a, const ClassRow& b) { return a.f1 < b.f1; });
  const std::span<const ClassRow> all(rows);
  std::vector<ClassRow> best(rows.end() - static_cast<int64_t>(kBestShown), rows.end());
  std::reverse(best.begin(), best.end());
  const double class_count = number_in(detail, "class_count");  // only the classes with the most samples are listed
  const std::string listed =
      std::to_string(rows.size()) +
      (class_count > static_cast<double>(rows.size()) ? " of " + fixed(class_count, 0) + ", those with the most samples" : "");
  return "<div class=\"card\"><h3>Classes <span class=\"faint\">" + listed + ", by F1</span></h3>" +
         details_html("The worst " + std::to_string(kWorstShown),
                      "<div class=\"tall\" tabindex=\"0\">" + class_table(all.first(kWorstShown)) + "</div>", false) +
         details_html("The best " + std::to_string(kBestShown), class_table(best), false) + "</div>\n";
}

// Reliability diagram: accuracy per confidence bin. Perfect calibration is the diagonal.
std::string calibration_html(const Json& detail) {
  std::string bars;
  constexpr double wide = 1000.0 / 15 - 6;
  for (const Json& bin : list_in(detail, "calibration")) {
    const double confidence = std::clamp(number_in(bin, "confidence"), 0.0, 1.0),
                 accuracy = std::clamp(number_in(bin, "accuracy"), 0.0, 1.0);
    const double x = 1000.0 / 15 * std::clamp(std::ceil(confidence * 15) - 1, 0.0, 14.0) + 3;
    const auto bar = [&](const char* kind, double low, double high) {
      return "<rect class=\"" + std::string(kind) + "\" x=\"" + fixed(x, 1) + "\" y=\"" + fixed(1000 - 1000 * high, 1) + "\" width=\"" +
             fixed(wide, 1) + "\" height=\"" + fixed(1000 * (high - low), 1) + "\"/>";
    };
    bars += "<g><title>confidence " + figure_text("recall", confidence) + ", accuracy " + figure_text("recall", accuracy) + " of " +
            fixed(number_in(bin, "count"), 0) + "</title>" + bar("hit", 0, accuracy) +
            bar("gap", std::min(accuracy, confidence), std::max(accuracy, confidence)) + "</g>";
  }
  if (bars.empty()) return "";
  std::string labels;
  for (int k = 0; k <= 4; ++k) {
    const std::string at = std::to_string(25 * k) + "%";
    labels += "<span class=\"ty\" style=\"bottom:" + at + "\">" + std::to_string(25 * k) +
              " %</span><span class=\"tx\" style=\"left:" + at + "\">" + std::to_string(25 * k) + " %</span>";
  }
  return "<figure class=\"card chart\"><figcaption><h3>Calibration</h3><span class=\"legend\"><span class=\"key\"><i class=\"box "
         "hit\"></i>accuracy"
         "</span><span class=\"key\"><i class=\"box gap\"></i>gap to the confidence</span><span class=\"key\"><i "
         "class=\"dashes\"></i>perfect calibration</span></span></figcaption><div class=\"plot "
         "square\"><svg "
         "viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Accuracy by confidence\"><path class=\"grid\" "
         "d=\"M0 "
         "250H1000M0 500H1000M0 750H1000M0 0H1000M0 1000H1000\"/>" +
         bars + "<path class=\"mark\" d=\"M0 1000L1000 0\"/></svg>" + labels + "<span class=\"across\">confidence</span></div></figure>\n";
}

}  // namespace

std::string classes_html(const RunRecord& run) {
  if (!run.evaluation.is_object() || !run.evaluation.contains("detail")) return "";
  const Json& detail = run.evaluation["detail"];
  const Confusion confusion = confusion_in(detail);
  std::string matrix, mistakes;
  if (!confusion.classes.empty() && confusion.classes.size() <= kMostClasses) matrix = matrix_html(confusion);
  mistakes = mistakes_html(mistakes_in(detail, confusion));
  const std::string classes = per_class_html(detail), calibration = calibration_html(detail);
  const auto pair = [](const std::string& left, const std::string& right) {
    return "<div class=\"pair\"><div>" + left + "</div><div>" + right + "</div></div>\n";
  };
  if (matrix.empty() && classes.empty() && calibration.empty()) return "";
  if (matrix.empty() || confusion.classes.size() > kMostWithCounts) return matrix + pair(classes, mistakes + calibration);
  return pair(matrix + mistakes, classes + calibration);
}

}  // namespace heed
