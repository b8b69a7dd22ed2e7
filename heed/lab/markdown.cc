// One Markdown page per topic, with figures as SVG.
#include <algorithm>
#include <map>

#include "heed/lab/draw.h"
#include "heed/lab/markdown.h"
#include "heed/lab/sources.h"
#include "heed/text/unicode.h"

namespace heed::lab {

std::string page_name(Topic topic) {
  static const std::map<Topic, std::string> names = {{Topic::temperature, "temperature"}, {Topic::expression, "expression"},
                                                     {Topic::statistics, "statistics"},   {Topic::cost, "cost"},
                                                     {Topic::positions, "positions"},     {Topic::convolution, "convolution"},
                                                     {Topic::layers, "layers"},           {Topic::learning, "learning"}};
  return names.at(topic);
}

std::string link_to(const Experiment& experiment) {
  const std::string heading = experiment.number + ": " + experiment.title;
  std::string anchor;  // as GitHub makes it from the heading: without punctuation and symbols such as √
  for (size_t i = 0; i < heading.size();) {
    const size_t begin = i;
    const char32_t letter = text::next_char(heading, i);
    if (letter == ' ')
      anchor += '-';
    else if (letter >= 'A' && letter <= 'Z')
      anchor += static_cast<char>(letter - 'A' + 'a');
    else if (letter == '-' || (text::classes_of(letter) & text::kWord) != 0)
      anchor.append(heading, begin, i - begin);
  }
  return "[" + experiment.title + "](" + page_name(experiment.topic) + ".md#" + anchor + ")";
}

std::string key_number(const Report& report, const std::string& start) {
  const auto named = [&](const Measured& each) { return !start.empty() && each.name.starts_with(start); };
  const auto against_publication = [](const Measured& each) { return each.rule == Measured::Rule::contradicts; };
  auto shown = std::find_if(report.measured.begin(), report.measured.end(), named);
  if (shown == report.measured.end()) shown = std::find_if(report.measured.begin(), report.measured.end(), against_publication);
  if (shown == report.measured.end()) shown = report.measured.begin();
  const bool against = shown->rule == Measured::Rule::contradicts;
  return shown->name + ": " + number_text(shown->measured) + (against ? " (published: " + number_text(shown->predicted) + ")" : "");
}

std::string in_cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

namespace {

std::string numbers_in_markdown(const Report& report) {
  std::string out = "| quantity | predicted | measured |\n|---|---|---|\n";
  for (const Measured& each : report.measured)
    out += "| " + in_cell(each.name) + " | " + (each.rule == Measured::Rule::contradicts ? "published: " : "") + each.prediction() + " | " +
           number_text(each.measured) + " |\n";
  return out + "\n";
}

std::string table_in_markdown(const Table& table) {
  std::string out = "**" + table.title + "**\n\n|", rule = "|";
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const bool is_number = std::all_of(table.rows.begin(), table.rows.end(), [&](const std::vector<Cell>& row) {
      return i < row.size() && std::holds_alternative<double>(row[i]);
    });
    out += " " + in_cell(table.columns[i]) + " |", rule += is_number ? "---:|" : "---|";
  }
  out += "\n" + rule + "\n";
  for (const std::vector<Cell>& row : table.rows) {
    out += "|";
    for (const Cell& cell : row)
      out +=
          " " + (std::holds_alternative<double>(cell) ? number_text(std::get<double>(cell)) : in_cell(std::get<std::string>(cell))) + " |";
    out += "\n";
  }
  return out + "\n";
}

// Of several frames the middle one.
std::string figures_in_markdown(const Result& result, const Path& folder) {
  std::string out;
  for (size_t i = 0; i < result.report.figures.size(); ++i) {
    const Figure& figure = result.report.figures[i];
    const size_t middle = figure.frames.size() / 2;
    const std::string file = "figures/" + figure_file(*result.experiment, i, 0, 1) + ".svg";
    write_text(folder / file, svg_file(drawing_of(figure.frames[middle])));
    out += "![" + figure.title + "](" + file + ")\n\n**" + figure.title + ".** " + figure.caption;
    if (figure.frames.size() > 1) out += " Here " + figure.parameter + " = " + figure.frames[middle].value + ".";
    out += "\n\n";
  }
  return out;
}

std::string result_in_markdown(const Result& result, const Path& folder) {
  const Experiment& experiment = *result.experiment;
  std::string out = "## " + experiment.number + ": " + experiment.title + "\n\n**Claim.** " + experiment.claim + "\n\n";
  if (!experiment.formula.empty()) out += "$$" + experiment.formula + "$$\n\n";
  if (!experiment.published.empty()) out += "**As published.** " + experiment.published + "\n\n";
  if (const std::string source = source_text(experiment); !source.empty()) out += "Source: " + source + "\n\n";
  out += "**Setup.** " + experiment.setup + " (`heed lab " + experiment.name + "`)\n\n";
  out += "**Result: " + verdict_text(result.verdict) + ".** " + finding_of(result.report) + "\n\n";
  out += numbers_in_markdown(result.report);
  for (const Table& table : result.report.tables) out += table_in_markdown(table);
  return out + figures_in_markdown(result, folder);
}

// Published claims that measurements contradict.
std::string errors_in_markdown(std::span<const Result> results) {
  std::string out =
      "# Published errors\n\nClaims of courses that do not hold as published, with the right claim and the measurements that contradict "
      "the "
      "published value. Courses are quoted in our own words.\n\n";
  for (const Result& result : results) {
    if (result.verdict != Verdict::corrected) continue;
    const Experiment& experiment = *result.experiment;
    out += "## " + experiment.number + ": " + link_to(experiment) + "\n\n> Published: " + experiment.published +
           "\n\nSource: " + source_text(experiment) + "\n\nRight: " + experiment.claim + "\n\n" +
           (experiment.formula.empty() ? "" : "$$" + experiment.formula + "$$\n\n") + "| | published | measured |\n|---|---|---|\n";
    for (const Measured& each : result.report.measured)
      if (each.rule == Measured::Rule::contradicts)
        out += "| " + in_cell(each.name) + " | " + each.prediction() + " | " + number_text(each.measured) + " |\n";
    out += "\n`heed lab " + experiment.name + "`\n\n";
  }
  return out;
}

}  // namespace

void write_markdown(const Path& folder, std::span<const Result> results, std::span<const Result> twice) {
  std::filesystem::create_directories(folder / "figures");
  std::map<Topic, std::string> pages;
  std::string list =
      "# The lab\n\nClaims about attention, each tested by an experiment: its measurements decide the verdict. \"Holds, corrected\" means "
      "that the claim holds as stated here, and that the measurements contradict the published form. `heed lab all` runs all experiments; "
      "`./dev lab-docs` writes these pages.\n\n"
      "- [The courses](#the-courses): every item of the courses that the lab follows, in order.\n"
      "- [Published errors](errors.md): what the measurements contradict.\n"
      "- [Attention heads of a vision transformer during training](heads.md), a separate experiment.\n";
  if (!twice.empty())
    list += "- [Do verdicts survive longer training?](stability.md) Experiments that train, with twice the epochs and steps.\n";
  list +=
      "\nResults of experiments that train models are kept in the user's cache folder, one for each set of settings and build of heed; "
      "`--fresh` runs the experiments again.\n";
  for (const Result& result : results) {
    check(result.error.empty(), "lab: ", result.experiment->number, " failed: ", result.error);
    std::string& page = pages[result.experiment->topic];
    if (page.empty()) page = "# " + title_of(result.experiment->topic) + "\n\n";
    page += result_in_markdown(result, folder);
  }
  for (const auto& [topic, page] : pages) {
    write_text(folder / (page_name(topic) + ".md"), page);
    list += "\n## [" + title_of(topic) + "](" + page_name(topic) +
            ".md)\n\n| | claim | verdict | key number | command |\n|---|---|---|---|---|\n";
    for (const Result& result : results)
      if (result.experiment->topic == topic)
        list += "| " + result.experiment->number + " | " + link_to(*result.experiment) + " | " + verdict_text(result.verdict) + " | " +
                in_cell(key_number(result.report)) + " | `heed lab " + result.experiment->name + "` |\n";
  }
  write_text(folder / "errors.md", errors_in_markdown(results));
  if (!twice.empty()) write_stability(folder, results, twice);
  write_text(folder / "README.md", list + course_pages(folder, results));
}

}  // namespace heed::lab
