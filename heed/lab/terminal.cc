#include "heed/lab/terminal.h"

#include <algorithm>

#include "heed/io/markup.h"
#include "heed/io/terminal_style.h"
#include "heed/lab/formula.h"
#include "heed/lab/sources.h"

namespace heed::lab {
namespace {

TextStyle paint_of(Verdict verdict) {
  return verdict == Verdict::holds ? TextStyle::green : verdict == Verdict::fails ? TextStyle::red : TextStyle::yellow;
}

void print_paragraph(std::ostream& out, const std::string& first, const std::string& text, const Terminal& terminal) {
  const size_t width = static_cast<size_t>(std::max(terminal.width, 40)) - 4;
  bool started = false;
  for (const std::string& line : wrapped(text, width - display_width(first))) {
    out << "    " << (started ? std::string(display_width(first), ' ') : styled(first, TextStyle::faint, terminal.colour)) << line << '\n';
    started = true;
  }
}

// Aligned columns; right: which columns are right-aligned.
void print_rows(std::ostream& out, const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += (i ? "  " : "    ") + padded(row[i], widths[i], i < right.size() && right[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

std::string cell_text(const Cell& cell) {
  return std::holds_alternative<double>(cell) ? number_text(std::get<double>(cell)) : std::get<std::string>(cell);
}

void print_measured(std::ostream& out, const std::vector<Measured>& all, const Terminal& terminal) {
  std::vector<std::vector<std::string>> rows{{"", "predicted", "measured", ""}};
  for (const Measured& each : all) {
    const bool against = each.rule == Measured::Rule::contradicts;
    rows.push_back({each.name, each.prediction(), number_text(each.measured),
                    styled(!each.passes() ? "✗"
                           : against      ? "contradicted"
                                          : "✓",
                           !each.passes() ? TextStyle::red
                           : against      ? TextStyle::yellow
                                          : TextStyle::green,
                           terminal.colour)});
  }
  print_rows(out, rows, {false, true, true});
}

void print_table(std::ostream& out, const Table& table, const Terminal& terminal) {
  out << "\n    " << styled(table.title, TextStyle::bold, terminal.colour) << '\n';
  std::vector<std::vector<std::string>> rows{table.columns};
  std::vector<bool> right(table.columns.size(), true);
  for (const auto& row : table.rows) {
    rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      rows.back().push_back(cell_text(row[i]));
      if (i < right.size() && std::holds_alternative<std::string>(row[i])) right[i] = false;
    }
  }
  print_rows(out, rows, right);
}

}  // namespace

size_t display_width(std::string_view text) {
  const auto letters = letters_of(text);
  return static_cast<size_t>(std::count_if(letters.begin(), letters.end(), [](const Letter& letter) {
    return letter.point < 0x300 || letter.point > 0x36f;  // without combining marks
  }));
}

std::string padded(std::string text, size_t width, bool right) {
  const std::string padding(width - std::min(width, display_width(text)), ' ');
  return right ? padding + text : text + padding;
}

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> out{""};
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!out.back().empty() && display_width(out.back()) + 1 + display_width(word) > width) out.emplace_back();
    out.back() += (out.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  return out;
}

void list_experiments(std::ostream& out, const Terminal& terminal) {
  size_t widest = 0;
  for (const Experiment& experiment : all_experiments()) widest = std::max(widest, experiment.name.size());
  for (int topic = 0; topic <= static_cast<int>(Topic::learning); ++topic) {
    bool started = false;
    for (const Experiment& experiment : all_experiments()) {
      if (experiment.topic != static_cast<Topic>(topic)) continue;
      if (!started) out << styled(title_of(experiment.topic), TextStyle::bold, terminal.colour) << '\n';
      started = true;
      out << "  " << padded(experiment.number, 4) << padded(experiment.name, widest + 2) << experiment.title
          << (experiment.published.empty() ? "" : styled(" (corrects a published claim)", TextStyle::faint, terminal.colour)) << '\n';
    }
  }
}

void print_result(std::ostream& out, const Result& result, const Terminal& terminal) {
  const Experiment& experiment = *result.experiment;
  const std::string head = experiment.number + "  " + experiment.title;
  const std::string word = result.error.empty() ? verdict_text(result.verdict) : "error";
  const size_t width = static_cast<size_t>(std::max(terminal.width, 40));
  const size_t gap = width > display_width(head) + display_width(word) + 2 ? width - display_width(head) - display_width(word) : 2;
  out << styled(head, TextStyle::bold, terminal.colour) << std::string(gap, ' ') << styled(word, paint_of(result.verdict), terminal.colour)
      << '\n';
  print_paragraph(out, "", sentence_text(experiment.claim), terminal);
  if (!experiment.formula.empty()) print_paragraph(out, "", formula_text(experiment.formula), terminal);
  if (!experiment.published.empty()) print_paragraph(out, "published: ", sentence_text(experiment.published), terminal);
  if (const std::string source = source_text(experiment); !source.empty()) print_paragraph(out, "source: ", source, terminal);
  if (!result.error.empty()) {
    print_paragraph(out, "error: ", result.error, terminal);
    return;
  }
  if (!experiment.setup.empty()) print_paragraph(out, "setup: ", sentence_text(experiment.setup), terminal);
  print_paragraph(out, "result: ", sentence_text(finding_of(result.report)), terminal);
  out << '\n';
  print_measured(out, result.report.measured, terminal);
  for (const Table& table : result.report.tables) print_table(out, table, terminal);
  for (const Figure& figure : result.report.figures) {
    out << "\n    " << styled(figure.title, TextStyle::bold, terminal.colour) << '\n';
    for (const std::string& line : figure_lines(figure, terminal)) out << "    " << line << '\n';
  }
  if (!result.as_documented())
    out << "    " << styled("documented: " + verdict_text(experiment.expected), TextStyle::red, terminal.colour) << '\n';
}

}  // namespace heed::lab
