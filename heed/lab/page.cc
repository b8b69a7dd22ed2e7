#include "heed/lab/page.h"

#include <algorithm>
#include <cctype>

#include "heed/io/markup.h"
#include "heed/lab/draw.h"
#include "heed/lab/formula.h"
#include "heed/lab/sources.h"
#include "heed/train/report_draw.h"

namespace heed::lab {
namespace {

const char* verdict_class(const Result& result) {
  return result.verdict == Verdict::holds ? "holds" : result.verdict == Verdict::fails ? "fails" : "corrected";
}

std::string badge(const Result& result) {
  const std::string word = result.error.empty() ? verdict_text(result.verdict) : "error";
  return std::string("<span class=\"badge ") + verdict_class(result) + "\">" + word + "</span>";
}

// 1.5e-7 -> 1.5·10⁻⁷
std::string number_html(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t e = text.find('e', at);
    if (e == std::string::npos || e == at || !std::isdigit(static_cast<unsigned char>(text[e - 1])))
      return out + escape_markup(text.substr(at));
    const size_t end = std::min(text.find_first_not_of("-0123456789", e + 1), text.size());
    const bool alone = text.substr(at, e - at).ends_with("1") && (e == at + 1 || text[e - 2] == ' ');
    std::string power = text.substr(e + 1, end - e - 1);
    if (power.starts_with('-')) power.replace(0, 1, "−");
    out += escape_markup(alone ? text.substr(at, e - at - 1) : text.substr(at, e - at) + "·") + "10<sup>" + power + "</sup>";
    at = end;
  }
  return out;
}

bool is_wide(const Figure& figure) { return !figure.frames.empty() && figure.frames[0].plots.size() > 1; }

std::string measured_html(const Report& report, bool wide) {
  std::string rows;
  for (const Measured& each : report.measured) {
    const bool against = each.rule == Measured::Rule::contradicts;
    const std::string mark = !each.passes() ? "<td class=\"mark fails\" title=\"not as predicted\">✗</td>"
                             : against      ? "<td class=\"mark corrected\" title=\"contradicted\">≠</td>"
                                            : "<td class=\"mark holds\" title=\"as predicted\">✓</td>";
    rows += "<tr><th scope=\"row\">" + sentence_markup(each.name) + "</th><td class=\"number" + (against ? " published" : "") + "\">" +
            (against ? "<small>published</small> " : "") + number_html(each.prediction()) + "</td><td class=\"number\">" +
            number_html(number_text(each.measured)) + "</td>" + mark + "</tr>\n";
  }
  return "<div class=\"card" + std::string(wide ? " wide" : "") +
         "\"><div class=\"scroll\"><table class=\"measured\"><thead><tr><th></th><th class=\"number\">predicted</th><th "
         "class=\"number\">measured</th><th></th></tr></thead><tbody>" +
         rows + "</tbody></table></div></div>\n";
}

std::string table_html(const Table& table) {
  std::string head, rows;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const bool is_text = std::any_of(table.rows.begin(), table.rows.end(), [&](const std::vector<Cell>& row) {
      return i < row.size() && std::holds_alternative<std::string>(row[i]);
    });
    head += (is_text ? "<th>" : "<th class=\"number\">") + sentence_markup(table.columns[i]) + "</th>";
  }
  for (const auto& row : table.rows) {
    rows += "<tr>";
    for (const Cell& cell : row)
      rows += std::holds_alternative<double>(cell) ? "<td class=\"number\">" + number_html(number_text(std::get<double>(cell))) + "</td>"
                                                   : "<td>" + sentence_markup(std::get<std::string>(cell)) + "</td>";
    rows += "</tr>\n";
  }
  return "<div class=\"card\"><h3>" + sentence_markup(table.title) + "</h3><div class=\"scroll\"><table><thead><tr>" + head +
         "</tr></thead><tbody>" + rows + "</tbody></table></div></div>\n";
}

std::string settings_line(const Json& settings) {
  std::string out;
  for (const auto& [key, value] : settings.items()) {
    const bool is_empty = value.is_string() && value.get<std::string>().empty();
    if ((key == "full" && value == false) || (key == "budget" && value == 1) || is_empty) continue;
    out += " " + key + "=" + (value.is_string() ? value.get<std::string>() : value.is_number_float() ? setting_text(value) : value.dump());
  }
  return out;
}

// Figures side by side, those with several plots over the whole width. The table fills the cell next to an odd one.
std::string evidence_html(const Result& result) {
  const std::vector<Figure>& figures = result.report.figures;
  std::string out;
  for (size_t i = 0; i < figures.size(); ++i) out += figure_html(figures[i], result.experiment->name + "-" + std::to_string(i + 1));
  const auto narrow = std::count_if(figures.begin(), figures.end(), [](const Figure& figure) { return !is_wide(figure); });
  return "<div class=\"figures\">" + out + measured_html(result.report, narrow % 2 == 0) + "</div>\n";
}

std::string experiment_html(const Result& result) {
  const Experiment& experiment = *result.experiment;
  std::string out = "<article id=\"" + experiment.name + "\" class=\"experiment\"><header><p class=\"kicker\">" + experiment.number +
                    "</p>" + badge(result) + "<h3><a href=\"#" + experiment.name + "\">" + sentence_markup(experiment.title) +
                    "</a></h3></header>\n";
  out += "<p class=\"claim\">" + sentence_markup(experiment.claim) + "</p>\n";
  if (!experiment.formula.empty()) out += "<div class=\"formula\" tabindex=\"0\">" + formula_markup(experiment.formula) + "</div>\n";
  if (!result.error.empty()) return out + "<p class=\"said wrong\"><b>Error</b> " + escape_markup(result.error) + "</p></article>\n";
  if (!experiment.published.empty())
    out += "<p class=\"said wrong\"><b>Published</b> <span>" + sentence_markup(experiment.published) + "</span></p>\n";
  if (const std::string source = source_text(experiment); !source.empty())
    out += "<p class=\"said source\"><b>Source</b> <span>" + escape_markup(source) + "</span></p>\n";
  if (!experiment.setup.empty()) out += "<p class=\"said\"><b>Setup</b> <span>" + sentence_markup(experiment.setup) + "</span></p>\n";
  out += "<p class=\"said right\"><b>" + std::string(result.verdict == Verdict::corrected ? "Correct" : "Result") + "</b> <span>" +
         sentence_markup(finding_of(result.report)) + "</span></p>\n";
  if (!result.as_documented())
    out += "<p class=\"said wrong\"><b>Documented</b> <span>" + verdict_text(experiment.expected) + "</span></p>\n";
  out += evidence_html(result);
  for (const Table& table : result.report.tables) out += table_html(table);
  return out + "<p class=\"command\"><code>heed lab " + experiment.name + " " + escape_markup(settings_line(result.settings)) +
         "</code> <span>" + (result.seconds < 0.1 ? "under 0.1" : fixed(result.seconds, 1)) + " s</span></p></article>\n";
}

std::string contents_html(std::span<const Result> results, int topic) {
  std::string out;
  for (const Result& result : results)
    if (static_cast<int>(result.experiment->topic) == topic)
      out += "<li><a href=\"#" + result.experiment->name + "\"><i class=\"state " + verdict_class(result) +
             "\"></i><span class=\"number\">" + result.experiment->number + "</span><span>" + sentence_markup(result.experiment->title) +
             "</span></a></li>\n";
  return out;
}

std::string tally_html(std::span<const Result> results) {
  struct Kind {
    Verdict verdict;
    const char *name, *text;
  };
  std::string out;
  for (const Kind& kind : {Kind{Verdict::holds, "holds", "as claimed"}, Kind{Verdict::corrected, "corrected", "corrected"},
                           Kind{Verdict::fails, "fails", "do not hold"}, Kind{Verdict::undecided, "corrected", "not decided"}}) {
    const auto count = std::count_if(results.begin(), results.end(), [&](const Result& each) { return each.verdict == kind.verdict; });
    if (count > 0) out += std::string("<span class=\"badge ") + kind.name + "\">" + std::to_string(count) + " " + kind.text + "</span> ";
  }
  return "<p class=\"tally\">" + out + "</p>\n";
}

}  // namespace

std::string results_page(std::span<const Result> results) {
  std::string contents, sections;
  for (int topic = 0; topic <= static_cast<int>(Topic::learning); ++topic) {
    const std::string list = contents_html(results, topic);
    if (list.empty()) continue;
    const std::string title = title_of(static_cast<Topic>(topic)), id = "topic-" + std::to_string(topic);
    contents += "<li><a class=\"topic\" href=\"#" + id + "\">" + title + "</a><ul>" + list + "</ul></li>\n";
    std::string body;
    for (const Result& result : results)
      if (static_cast<int>(result.experiment->topic) == topic) body += experiment_html(result);
    sections += section_html(id, title, body);
  }
  return std::string("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" ") +
         "content=\"width=device-width, initial-scale=1\">\n<title>The lab: heed</title>\n<style>" + kReportStyle + kLabStyle +
         "</style>\n</head>\n<body>\n<header class=\"top\"><h1>What attention does</h1><p class=\"about\">Claims about attention, each "
         "tested by an experiment on this machine.</p>\n" +
         tally_html(results) + "</header>\n<div class=\"sheet\"><nav aria-label=\"Experiments\"><ul>" + contents + "</ul></nav>\n<main>\n" +
         sections + "</main></div>\n<footer class=\"faint\">generated by heed lab</footer>\n<script>" + kLabScript +
         "</script>\n</body>\n</html>\n";
}

std::string figure_html(const Figure& figure, const std::string& id) {
  const bool film = figure.frames.size() > 1;
  const size_t first = figure.frames.size() / 2;  // start in the middle: the first and last frames often show little
  std::string frames, values, slider;
  for (size_t i = 0; i < figure.frames.size(); ++i) {
    const Frame& frame = figure.frames[i];
    frames += std::string("<div class=\"frame\"") + (i != first ? " hidden" : "") + ">";
    for (const Plot& plot : frame.plots)
      frames += svg_in_page(drawing_of(plot, frame.plots.size() == 1), figure.title + (plot.title.empty() ? "" : ", " + plot.title) +
                                                                           (film ? ", " + figure.parameter + " = " + frame.value : ""));
    frames += "</div>\n";
    values += (i ? "|" : "") + escape_markup(frame.value);
  }
  if (film)
    slider = "<div class=\"slider\" data-values=\"" + values + "\"><button type=\"button\" aria-label=\"play\">▶</button><input id=\"" +
             id + "-slider\" type=\"range\" min=\"0\" value=\"" + std::to_string(first) + "\" max=\"" +
             std::to_string(figure.frames.size() - 1) + "\" aria-label=\"" + escape_markup(figure.parameter) + "\"><output for=\"" + id +
             "-slider\">" + escape_markup(figure.parameter) + " = <b>" + escape_markup(figure.frames[first].value) +
             "</b></output></div>\n";
  return "<figure class=\"card" + std::string(is_wide(figure) ? " wide" : "") + "\" id=\"" + id + "\"><figcaption><h4>" +
         sentence_markup(figure.title) + "</h4><p>" + sentence_markup(figure.caption) + "</p></figcaption>" + slider +
         "<div class=\"frames\">" + frames + "</div></figure>\n";
}

}  // namespace heed::lab
