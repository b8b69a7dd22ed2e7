// One Markdown page per topic, with figures as SVG.
#include <cctype>
#include <map>

#include "heed/lab/draw.h"
#include "heed/lab/result.h"
#include "heed/lab/sources.h"

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
  if (const std::string source = source_text(experiment); !source.empty()) out += "Source: " + source + "\n\n";
  out += "**Setup.** " + experiment.setup + " (`heed lab " + experiment.name + "`)\n\n";
  out += "**Result: " + verdict_text(result.verdict) + ".** " + finding_of(result.report) + "\n\n";
  return out + numbers_in_markdown(result.report) + figures_in_markdown(result, folder);
}

std::string link_to(const Experiment& experiment) {
  std::string anchor;  // as GitHub makes it from the heading
  for (const char letter : experiment.number + ": " + experiment.title) {
    const bool keeps = std::isalnum(static_cast<unsigned char>(letter)) || static_cast<unsigned char>(letter) >= 0x80;
    if (keeps || letter == ' ' || letter == '-') anchor += letter == ' ' ? '-' : static_cast<char>(std::tolower(letter));
  }
  return "[" + experiment.title + "](" + page_name(experiment.topic) + ".md#" + anchor + ")";
}

// The measurement that speaks most for the verdict: the first that contradicts a publication, else the first.
std::string key_number(const Report& report) {
  const Measured* shown = &report.measured.front();
  for (const Measured& each : report.measured)
    if (each.rule == Measured::Rule::contradicts) {
      shown = &each;
      break;
    }
  return shown->name + ": " + number_text(shown->measured);
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
           "\n\nSource: " + source_text(experiment) + "\n\nRight: " + experiment.claim + "\n\n| | published | measured |\n|---|---|---|\n";
    for (const Measured& each : result.report.measured)
      if (each.rule == Measured::Rule::contradicts)
        out += "| " + each.name + " | " + each.prediction() + " | " + number_text(each.measured) + " |\n";
    out += "\n`heed lab " + experiment.name + "`\n\n";
  }
  return out;
}

// The questions of every course with the experiment that answers each.
std::string courses_in_markdown(std::span<const Result> results) {
  std::string out =
      "# The courses\n\nThe questions of the courses that the lab follows, in our own words, each with the experiment that answers it.\n";
  for (int course = 0; course < kCourses; ++course) {
    out += "\n## " + title_of(static_cast<Course>(course)) + "\n\n| question | answered by | verdict | paper |\n|---|---|---|---|\n";
    for (const Result& result : results) {
      const Source* source = find_source(*result.experiment);
      if (source == nullptr || source->course != static_cast<Course>(course)) continue;
      out += "| " + source->question + " | " + result.experiment->number + " " + link_to(*result.experiment) + " | " +
             verdict_text(result.verdict) + " | " + (source->paper.empty() ? "none" : source->paper) + " |\n";
    }
  }
  return out;
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
    list += "\n## [" + title_of(topic) + "](" + page_name(topic) +
            ".md)\n\n| | claim | verdict | key number | command |\n|---|---|---|---|---|\n";
    for (const Result& result : results)
      if (result.experiment->topic == topic)
        list += "| " + result.experiment->number + " | " + link_to(*result.experiment) + " | " + verdict_text(result.verdict) + " | " +
                key_number(result.report) + " | `heed lab " + result.experiment->name + "` |\n";
  }
  write_text(folder / "errors.md", errors_in_markdown(results));
  write_text(folder / "courses.md", courses_in_markdown(results));
  write_text(folder / "README.md",
             list +
                 "\n[Published errors](errors.md) lists what the measurements contradict, [the courses](courses.md) which "
                 "question each experiment answers.\n\n[Attention heads of a vision transformer during training](heads.md) is a separate "
                 "experiment.\n");
}

}  // namespace heed::lab
