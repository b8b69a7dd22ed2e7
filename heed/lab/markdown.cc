// One Markdown page per topic, with figures as SVG.
#include <map>

#include "heed/lab/draw.h"
#include "heed/lab/result.h"

namespace heed::lab {
namespace {

std::string page_name(Topic topic) {
  static const std::map<Topic, std::string> names = {{Topic::temperature, "temperature"}, {Topic::expression, "expression"},
                                                     {Topic::statistics, "statistics"},   {Topic::cost, "cost"},
                                                     {Topic::positions, "positions"},     {Topic::convolution, "convolution"},
                                                     {Topic::layers, "layers"},           {Topic::learning, "learning"}};
  return names.at(topic);
}

std::string numbers_in_markdown(const Report& report) {
  std::string out = "| quantity | predicted | measured |\n|---|---|---|\n";
  for (const Measured& each : report.measured)
    out += "| " + each.name + " | " + (each.rule == Measured::Rule::contradicts ? "published: " : "") + each.prediction() + " | " +
           number_text(each.measured) + " |\n";
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
  out += "**Setup.** " + experiment.setup + " (`heed lab " + experiment.name + "`)\n\n";
  out += "**Result: " + verdict_text(result.verdict) + ".** " + finding_of(result.report) + "\n\n";
  return out + numbers_in_markdown(result.report) + figures_in_markdown(result, folder);
}

}  // namespace

void write_markdown(const Path& folder, std::span<const Result> results) {
  std::filesystem::create_directories(folder / "figures");
  std::map<Topic, std::string> pages;
  std::string list =
      "# The lab\n\nClaims about attention, each tested by an experiment: its measurements decide the verdict. \"Holds, corrected\" means "
      "that the "
      "claim holds as stated here, and that the measurements contradict the published form. `heed lab all` runs all experiments; `./dev "
      "lab-docs` writes these pages.\n";
  for (const Result& result : results) {
    check(result.error.empty(), "lab: ", result.experiment->number, " failed: ", result.error);
    std::string& page = pages[result.experiment->topic];
    if (page.empty()) page = "# " + title_of(result.experiment->topic) + "\n\n";
    page += result_in_markdown(result, folder);
  }
  for (const auto& [topic, page] : pages) {
    write_text(folder / (page_name(topic) + ".md"), page);
    list += "\n## [" + title_of(topic) + "](" + page_name(topic) + ".md)\n\n| | | verdict |\n|---|---|---|\n";
    for (const Result& result : results)
      if (result.experiment->topic == topic)
        list += "| " + result.experiment->number + " | " + result.experiment->title + " | " + verdict_text(result.verdict) + " |\n";
  }
  write_text(folder / "README.md",
             list + "\n[Attention heads of a vision transformer during training](heads.md) is a separate experiment.\n");
}

}  // namespace heed::lab
