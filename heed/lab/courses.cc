// A page per course, which follows its items in order, and the table of all items.
#include "heed/lab/markdown.h"
#include "heed/lab/sources.h"

namespace heed::lab {
namespace {

const Result* result_of(std::span<const Result> results, const std::string& number) {
  for (const Result& each : results)
    if (each.experiment->number == number) return &each;
  return nullptr;
}

std::string link_to_page(const std::string& page) { return "[" + page.substr(page.rfind('/') + 1) + "](" + page + ")"; }

std::string page_of(Course course) { return "course-" + name_of(course) + ".md"; }

// What a course defines or asks to build: text, command, page, and the experiment that measures it.
std::string task_in_markdown(const CourseTask& task, std::span<const Result> results) {
  std::string out =
      "## " + task.number + ": " + task.task + "\n\n`" + task.command + "`, described in " + link_to_page(task.page) + ".\n\n";
  if (!task.result.empty()) out += "Result: " + task.result + ", with the command on that page.\n\n";
  if (const Result* measured = result_of(results, task.experiment))
    out += (task.result.empty() ? "Measured by " : "See also ") + task.experiment + ", " + link_to(*measured->experiment) + ": " +
           key_number(measured->report, task.measurement) + ".\n\n";
  return out;
}

std::string question_in_markdown(const Result& result, const Source& source) {
  const Experiment& experiment = *result.experiment;
  std::string out = "## " + experiment.number + ": " + source.question + "\n\n";
  if (!experiment.published.empty()) out += "> Published: " + experiment.published + "\n\n";
  out += "**Answer (" + verdict_text(result.verdict) + ").** " + finding_of(result.report) + "\n\n";
  out += "Key number: " + key_number(result.report) + ". Numbers and figures: " + link_to(experiment) + ", `heed lab " + experiment.name +
         "`.";
  return out + (source.paper.empty() ? "" : " Paper: " + source.paper + ".") + "\n\n";
}

}  // namespace

std::string course_pages(const Path& folder, std::span<const Result> results) {
  std::string out =
      "\n## The courses\n\nWhat the courses define and ask, in our own words and in the order of their subjects: D are definitions, T "
      "things to build, L claims and questions. Every row has a command, a page and a number that answer it.\n";
  for (int i = 0; i < kCourses; ++i) {
    const auto course = static_cast<Course>(i);
    std::string page =
        "# " + title_of(course) + "\n\nWhat this source defines and asks, in our own words and in its order, each with an answer.\n\n";
    out += "\n### [" + title_of(course) + "](" + page_of(course) +
           ")\n\n| | item | answered by | verdict | number | command |\n|---|---|---|---|---|---|\n";
    for (const CourseTask& task : course_tasks()) {
      if (task.course != course) continue;
      page += task_in_markdown(task, results);
      const Result* measured = result_of(results, task.experiment);
      out += "| " + task.number + " | " + task.task + " | " + link_to_page(task.page) + ", " + task.experiment + " | " +
             (!task.result.empty() ? "measured"
              : measured           ? verdict_text(measured->verdict)
                                   : "not run") +
             " | " +
             (!task.result.empty() ? task.result
              : measured           ? in_cell(key_number(measured->report, task.measurement))
                                   : "not run") +
             " | `" + task.command + "` |\n";
    }
    for (const Result& result : results) {
      const Source* source = find_source(*result.experiment);
      if (source == nullptr || source->course != course) continue;
      page += question_in_markdown(result, *source);
      out += "| " + result.experiment->number + " | " + source->question + " | " + link_to(*result.experiment) + " | " +
             verdict_text(result.verdict) + " | " + in_cell(key_number(result.report)) + " | `heed lab " + result.experiment->name +
             "` |\n";
    }
    write_text(folder / page_of(course), page);
  }
  return out;
}

void write_stability(const Path& folder, std::span<const Result> once, std::span<const Result> twice) {
  std::string table, texts;
  for (const Result& longer : twice) {
    const Experiment& experiment = *longer.experiment;
    check(longer.error.empty(), "lab: ", experiment.number, " with twice the budget failed: ", longer.error);
    const Result* usual = result_of(once, experiment.number);
    if (usual == nullptr) continue;
    const bool same = usual->verdict == longer.verdict;
    table += "| " + experiment.number + " | " + link_to(experiment) + " | " + verdict_text(usual->verdict) + " | " +
             verdict_text(longer.verdict) + " | " + (same ? "yes" : "no: it depends on the budget") + " |\n";
    texts += "## " + experiment.number + ": " + experiment.title + "\n\n**Default (" + verdict_text(usual->verdict) + ").** " +
             finding_of(usual->report) + "\n\n**Twice (" + verdict_text(longer.verdict) + ").** " + finding_of(longer.report) + "\n\n";
    std::string rows;  // undecided reports may have measured other things
    for (const Measured& each : usual->report.measured)
      for (const Measured& other : longer.report.measured)
        if (each.name == other.name)
          rows += "| " + in_cell(each.name) + " | " + each.prediction() + " | " + number_text(each.measured) + " | " +
                  number_text(other.measured) + " |\n";
    if (!rows.empty()) texts += "| quantity | predicted | default | twice |\n|---|---|---|---|\n" + rows + "\n";
  }
  write_text(folder / "stability.md",
             "# Do verdicts survive longer training?\n\nExperiments that train models run with their default budget and with twice the "
             "epochs and steps (`budget=2`). Their verdicts follow from 95 % confidence intervals. `heed lab NAME --twice` shows both.\n\n"
             "| | claim | default | twice | same |\n|---|---|---|---|---|\n" +
                 table + "\n" + texts);
}

}  // namespace heed::lab
