#include "heed/lab/page.h"

#include <algorithm>
#include <cmath>

#include "heed/io/markup.h"
#include "heed/lab/draw.h"
#include "heed/lab/formula.h"
#include "heed/train/report_draw.h"

namespace heed::lab {
namespace {

const char* verdict_class(const Result& result) {
  return result.verdict == Verdict::holds ? "holds" : result.verdict == Verdict::corrected ? "corrected" : "fails";
}

std::string badge(const Result& result) {
  const std::string word = result.error.empty() ? word_for(result.verdict) : "could not be run";
  return std::string("<span class=\"badge ") + verdict_class(result) + "\">" + word + "</span>";
}

std::string measured_html(const Report& report) {
  std::string rows;
  for (const Measured& each : report.measured) {
    const bool against = each.rule == Measured::Rule::contradicts;
    const std::string mark = !each.passes() ? "<td class=\"mark fails\">✗</td>"
                             : against      ? "<td class=\"mark corrected\">contradicted</td>"
                                            : "<td class=\"mark holds\">✓</td>";
    rows += "<tr><th scope=\"row\">" + sentence_markup(each.name) + "</th><td class=\"number\">" + number_text(each.predicted) +
            "</td><td class=\"number\">" + number_text(each.measured) + "</td><td class=\"demand\">" + each.demand() + "</td>" + mark +
            "</tr>\n";
  }
  return "<div class=\"scroll\"><table class=\"measured\"><thead><tr><th></th><th class=\"number\">predicted</th><th "
         "class=\"number\">measured</th><th></th><th></th></tr></thead><tbody>" +
         rows + "</tbody></table></div>\n";
}

std::string table_html(const Table& table) {
  std::string head, rows;
  for (const std::string& column : table.columns) head += "<th class=\"number\">" + sentence_markup(column) + "</th>";
  for (const auto& row : table.rows) {
    rows += "<tr>";
    for (const Cell& cell : row)
      rows += std::holds_alternative<double>(cell) ? "<td class=\"number\">" + number_text(std::get<double>(cell)) + "</td>"
                                                   : "<td>" + sentence_markup(std::get<std::string>(cell)) + "</td>";
    rows += "</tr>\n";
  }
  return "<div class=\"card\"><h3>" + sentence_markup(table.title) + "</h3><div class=\"scroll\"><table><thead><tr>" + head +
         "</tr></thead><tbody>" + rows + "</tbody></table></div></div>\n";
}

std::string settings_line(const Json& settings) {
  std::string out;
  for (const auto& [key, value] : settings.items())
    out += (out.empty() ? "" : " ") + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  return out;
}

std::string experiment_html(const Result& result) {
  const Experiment& experiment = *result.experiment;
  std::string out = "<article id=\"" + experiment.name + "\" class=\"experiment\"><header><p class=\"kicker\">" + experiment.number +
                    "</p>" + badge(result) + "<h3><a href=\"#" + experiment.name + "\">" + sentence_markup(experiment.title) +
                    "</a></h3></header>\n";
  out += "<p class=\"claim\">" + sentence_markup(experiment.claim) + "</p>\n";
  if (!experiment.formula.empty()) out += "<div class=\"formula\">" + formula_markup(experiment.formula) + "</div>\n";
  if (!result.error.empty()) return out + "<p class=\"said wrong\"><b>Error</b> " + in_markup(result.error) + "</p></article>\n";
  if (!experiment.published.empty())
    out += "<p class=\"said wrong\"><b>Published</b> <span>" + sentence_markup(experiment.published) + "</span></p>\n";
  out += "<p class=\"said right\"><b>" + std::string(experiment.published.empty() ? "Found" : "Right") + "</b> <span>" +
         sentence_markup(result.report.statement) + "</span></p>\n";
  if (!result.as_documented()) out += "<p class=\"said wrong\"><b>Documented</b> <span>" + word_for(experiment.expected) + "</span></p>\n";
  std::string figures;
  for (size_t i = 0; i < result.report.figures.size(); ++i)
    figures += figure_html(result.report.figures[i], experiment.name + "-" + std::to_string(i + 1));
  if (!figures.empty()) out += "<div class=\"figures\">" + figures + "</div>\n";
  out += "<div class=\"card\">" + measured_html(result.report) + "</div>\n";
  for (const Table& table : result.report.tables) out += table_html(table);
  return out + "<p class=\"command\"><code>heed lab " + experiment.name + " " + in_markup(settings_line(result.settings)) +
         "</code> <span>" + number_text(std::round(100 * result.seconds) / 100) + " s</span></p></article>\n";
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
  std::string out;
  for (const auto& [verdict, name] :
       {std::pair(Verdict::holds, "holds"), std::pair(Verdict::corrected, "corrected"), std::pair(Verdict::fails, "fails")}) {
    const auto count = std::count_if(results.begin(), results.end(), [v = verdict](const Result& each) { return each.verdict == v; });
    if (count > 0) out += std::string("<span class=\"badge ") + name + "\">" + std::to_string(count) + " " + word_for(verdict) + "</span> ";
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
         "</style>\n</head>\n<body>\n<header class=\"top\"><h1>What attention does</h1><p class=\"about\">Claims about attention, each run "
         "on "
         "this machine and judged by its numbers.</p>\n" +
         tally_html(results) + "</header>\n<div class=\"sheet\"><nav aria-label=\"Experiments\"><ul>" + contents + "</ul></nav>\n<main>\n" +
         sections + "</main></div>\n<footer class=\"faint\">drawn by heed lab</footer>\n<script>" + kLabScript +
         "</script>\n</body>\n</html>\n";
}

std::string figure_html(const Figure& figure, const std::string& id) {
  std::string frames;
  const bool film = figure.frames.size() > 1;
  std::string values;
  for (size_t i = 0; i < figure.frames.size(); ++i) {
    const Frame& frame = figure.frames[i];
    frames += std::string("<div class=\"frame\"") + (i > 0 ? " hidden" : "") + ">";
    for (const Plot& plot : frame.plots)
      frames += svg_in_page(drawing_of(plot, frame.plots.size() == 1), figure.title + (plot.title.empty() ? "" : ", " + plot.title) +
                                                                           (film ? ", " + figure.parameter + " = " + frame.value : ""));
    frames += "</div>\n";
    values += (i ? "|" : "") + in_markup(frame.value);
  }
  std::string slider;
  if (film)
    slider = "<div class=\"slider\" data-values=\"" + values + "\"><button type=\"button\" aria-label=\"play\">▶</button><input id=\"" +
             id + "-slider\" type=\"range\" min=\"0\" value=\"0\" max=\"" + std::to_string(figure.frames.size() - 1) + "\" aria-label=\"" +
             in_markup(figure.parameter) + "\"><output for=\"" + id + "-slider\">" + in_markup(figure.parameter) + " = <b>" +
             in_markup(figure.frames[0].value) + "</b></output></div>\n";
  return "<figure class=\"card\" id=\"" + id + "\"><figcaption><h4>" + sentence_markup(figure.title) + "</h4><p>" +
         sentence_markup(figure.caption) + "</p></figcaption>" + slider + "<div class=\"frames\">" + frames + "</div></figure>\n";
}

}  // namespace heed::lab
