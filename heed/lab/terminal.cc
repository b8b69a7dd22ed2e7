#include "heed/lab/terminal.h"

#include <algorithm>

#include "heed/io/markup.h"
#include "heed/io/paint.h"
#include "heed/lab/formula.h"

namespace heed::lab {
namespace {

Paint paint_of(Verdict verdict) {
  return verdict == Verdict::holds ? Paint::green : verdict == Verdict::corrected ? Paint::yellow : Paint::red;
}

void tell_paragraph(std::ostream& out, const std::string& first, const std::string& text, const Terminal& terminal) {
  const size_t width = static_cast<size_t>(std::max(terminal.width, 40)) - 4;
  bool begun = false;
  for (const std::string& line : wrapped(text, width - wide(first))) {
    out << "    " << (begun ? std::string(wide(first), ' ') : painted(first, Paint::faint, terminal.colour)) << line << '\n';
    begun = true;
  }
}

// Cells under each other; numbers to the right.
void tell_rows(std::ostream& out, const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], wide(row[i]));
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

void tell_measured(std::ostream& out, const std::vector<Measured>& all, const Terminal& terminal) {
  std::vector<std::vector<std::string>> rows{{"", "predicted", "measured", ""}};
  for (const Measured& each : all) {
    const bool against = each.rule == Measured::Rule::contradicts;
    rows.push_back({each.name, each.prediction(), number_text(each.measured),
                    painted(!each.passes() ? "✗"
                            : against      ? "contradicted"
                                           : "✓",
                            !each.passes() ? Paint::red
                            : against      ? Paint::yellow
                                           : Paint::green,
                            terminal.colour)});
  }
  tell_rows(out, rows, {false, true, true});
}

void tell_table(std::ostream& out, const Table& table, const Terminal& terminal) {
  out << "\n    " << painted(table.title, Paint::bold, terminal.colour) << '\n';
  std::vector<std::vector<std::string>> rows{table.columns};
  std::vector<bool> right(table.columns.size(), true);
  for (const auto& row : table.rows) {
    rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      rows.back().push_back(cell_text(row[i]));
      if (i < right.size() && std::holds_alternative<std::string>(row[i])) right[i] = false;
    }
  }
  tell_rows(out, rows, right);
}

}  // namespace

size_t wide(std::string_view text) {
  const auto letters = letters_of(text);
  return static_cast<size_t>(std::count_if(letters.begin(), letters.end(), [](const Letter& letter) {
    return letter.point < 0x300 || letter.point > 0x36f;  // marks stand on the letter before them
  }));
}

std::string padded(std::string text, size_t width, bool right) {
  const std::string room(width - std::min(width, wide(text)), ' ');
  return right ? room + text : text + room;
}

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> out{""};
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!out.back().empty() && wide(out.back()) + 1 + wide(word) > width) out.emplace_back();
    out.back() += (out.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  return out;
}

void list_experiments(std::ostream& out, const Terminal& terminal) {
  size_t widest = 0;
  for (const Experiment& experiment : every_experiment()) widest = std::max(widest, experiment.name.size());
  for (int topic = 0; topic <= static_cast<int>(Topic::learning); ++topic) {
    bool begun = false;
    for (const Experiment& experiment : every_experiment()) {
      if (experiment.topic != static_cast<Topic>(topic)) continue;
      if (!begun) out << painted(title_of(experiment.topic), Paint::bold, terminal.colour) << '\n';
      begun = true;
      out << "  " << padded(experiment.number, 4) << padded(experiment.name, widest + 2) << experiment.title
          << (experiment.published.empty() ? "" : painted(" (corrects what was published)", Paint::faint, terminal.colour)) << '\n';
    }
  }
}

void tell(std::ostream& out, const Result& result, const Terminal& terminal) {
  const Experiment& experiment = *result.experiment;
  const std::string head = experiment.number + "  " + experiment.title;
  const std::string word = result.error.empty() ? word_for(result.verdict) : "could not be run";
  const size_t room = static_cast<size_t>(std::max(terminal.width, 40));
  const size_t gap = room > wide(head) + wide(word) + 2 ? room - wide(head) - wide(word) : 2;
  out << painted(head, Paint::bold, terminal.colour) << std::string(gap, ' ') << painted(word, paint_of(result.verdict), terminal.colour)
      << '\n';
  tell_paragraph(out, "", sentence_text(experiment.claim), terminal);
  if (!experiment.formula.empty()) tell_paragraph(out, "", formula_text(experiment.formula), terminal);
  if (!experiment.published.empty()) tell_paragraph(out, "published: ", sentence_text(experiment.published), terminal);
  if (!result.error.empty()) {
    tell_paragraph(out, "error: ", result.error, terminal);
    return;
  }
  tell_paragraph(out, "found: ", sentence_text(result.report.statement), terminal);
  out << '\n';
  tell_measured(out, result.report.measured, terminal);
  for (const Table& table : result.report.tables) tell_table(out, table, terminal);
  for (const Figure& figure : result.report.figures) {
    out << "\n    " << painted(figure.title, Paint::bold, terminal.colour) << '\n';
    for (const std::string& line : figure_lines(figure, terminal)) out << "    " << line << '\n';
  }
  if (!result.as_documented())
    out << "    " << painted("documented: " + word_for(experiment.expected), Paint::red, terminal.colour) << '\n';
}

}  // namespace heed::lab
