// heed runs: lists training runs with their state and metrics, or compares their metrics and settings.
#include <unistd.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <sstream>

#include "heed/cli/command.h"
#include "heed/cli/display_text.h"
#include "heed/cli/progress.h"
#include "heed/text/unicode.h"
#include "heed/train/model_folder.h"
#include "heed/train/run_summary.h"

namespace heed::cli {
namespace {

constexpr size_t kMaxCellWidth = 40;

struct RunsFlags {
  std::vector<std::string> folders = {}, more = {};
  bool compare = false, json = false;
};

using Rows = std::vector<std::vector<std::string>>;

// Columns are as wide as their widest cell, separated by two spaces.
std::vector<int64_t> column_widths(const Rows& rows) {
  std::vector<int64_t> widths(rows[0].size(), 0);
  for (const std::vector<std::string>& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text::count_chars(row[i]));
  return widths;
}
int64_t table_width(const Rows& rows) {
  const std::vector<int64_t> widths = column_widths(rows);
  return std::accumulate(widths.begin(), widths.end(), 2 * (std::ssize(widths) - 1));
}

void print_table(const Rows& rows) {
  const std::vector<int64_t> widths = column_widths(rows);
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += (i > 0 ? "  " : "") + padded(row[i], widths[i]);
    std::cout << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
}

std::string figure_cell(const std::string& name, double value) {
  const bool share = name.ends_with("accuracy") || name == "f1" || name == "top5" || name == "exact";
  std::ostringstream out;
  if (share)
    out << std::fixed << std::setprecision(2) << 100 * value << '%';
  else
    out << std::setprecision(4) << value;
  return out.str();
}

std::string time_cell(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  std::ostringstream out;
  out << std::setfill('0');
  if (whole >= 3600) out << whole / 3600 << ':' << std::setw(2);
  out << whole / 60 % 60 << ':' << std::setw(2) << whole % 60;
  return out.str();
}

// Shortens a long path at the start, as its end is more informative.
std::string path_cell(const std::string& path, size_t longest = kMaxCellWidth) {
  const Path whole = path;
  const std::string end = ".../" + (whole.parent_path().filename() / whole.filename()).string();
  const bool shortens = text::count_chars(path) > static_cast<int64_t>(longest) && end.size() < path.size();
  return display_text(shortens ? end : path, kMaxCellWidth);
}

std::string best_cell(const RunSummary& run) {
  if (run.best_epoch == 0) return "-";
  return run.metric + " " + figure_cell(run.metric, run.best) + " (epoch " + std::to_string(run.best_epoch) + ")";
}

// In a terminal that is too narrow, paths are shorter, and then columns are left out.
void list_runs(const std::vector<RunSummary>& runs) {
  const int64_t width = is_terminal(STDOUT_FILENO) ? terminal_width() : std::numeric_limits<int64_t>::max();
  Rows rows;
  for (const size_t longest : {kMaxCellWidth, size_t{12}}) {
    rows = {{"run", "task", "data", "model", "epochs", "best on validation", "time", "state"}};
    for (const RunSummary& run : runs)
      rows.push_back({path_cell(run.path.string(), longest), run.task, path_cell(run.data, longest), path_cell(run.model, longest),
                      std::to_string(run.epochs) + "/" + std::to_string(run.planned), best_cell(run), time_cell(run.seconds), run.state});
    if (table_width(rows) <= width) break;
  }
  for (const char* column : {"model", "data", "time", "task"}) {
    if (table_width(rows) <= width) break;
    const auto at = std::find(rows[0].begin(), rows[0].end(), column) - rows[0].begin();
    for (std::vector<std::string>& row : rows) row.erase(row.begin() + at);
  }
  print_table(rows);
}

// All metrics of the last evaluation and the best validation metric: name -> value per run, if the run has it.
std::vector<std::pair<std::string, std::vector<std::optional<double>>>> compared_figures(const std::vector<RunSummary>& runs) {
  std::vector<std::pair<std::string, std::vector<std::optional<double>>>> out;
  const auto add = [&](const std::string& name, size_t run, double value) {
    auto found = std::find_if(out.begin(), out.end(), [&](const auto& row) { return row.first == name; });
    if (found == out.end()) found = out.insert(out.end(), {name, std::vector<std::optional<double>>(runs.size())});
    found->second[run] = value;
  };
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].best_epoch > 0) add("validation " + runs[i].metric, i, runs[i].best);
    if (runs[i].evaluated_part != "validation")
      for (const auto& [name, value] : runs[i].figures)
        add((runs[i].evaluated_part.empty() ? "" : runs[i].evaluated_part + " ") + name, i, value);
  }
  return out;
}

ComparedSettings settings_of(const std::vector<RunSummary>& runs) {
  std::vector<RunRecord> records;
  for (const RunSummary& run : runs) records.push_back(run.record);
  return compared_settings(records);
}

void compare_runs(const std::vector<RunSummary>& runs) {
  const auto row = [&](const std::string& name, const auto& cell) {
    std::vector<std::string> out{name};
    for (size_t i = 0; i < runs.size(); ++i) out.push_back(cell(i));
    return out;
  };
  Rows rows{row("", [&](size_t i) { return path_cell(runs[i].path.string()); })};
  rows.push_back(row("state", [&](size_t i) { return runs[i].state; }));
  rows.push_back(row("epochs", [&](size_t i) { return std::to_string(runs[i].epochs) + "/" + std::to_string(runs[i].planned); }));
  rows.push_back(row("time", [&](size_t i) { return time_cell(runs[i].seconds); }));
  for (const auto& [name, values] : compared_figures(runs))
    rows.push_back(row(name, [&, &figures = values, &metric = name](size_t i) {
      return figures[i] ? figure_cell(metric.substr(metric.find(' ') + 1), *figures[i]) : "-";
    }));
  const ComparedSettings settings = settings_of(runs);
  rows.push_back(row("", [](size_t) { return ""; }));
  rows.push_back(row(settings.empty() ? "settings: identical" : "settings that differ", [](size_t) { return ""; }));
  for (const auto& [key, values] : settings)
    rows.push_back(row("  " + key, [&texts = values](size_t i) { return texts[i].empty() ? "-" : path_cell(texts[i]); }));
  print_table(rows);
}

Json comparison_json(const std::vector<RunSummary>& runs) {
  Json settings = Json::object(), figures = Json::object();
  for (const auto& [key, values] : settings_of(runs)) settings[key] = values;
  for (const auto& [name, values] : compared_figures(runs))
    for (const std::optional<double>& value : values) figures[name].push_back(value ? Json(*value) : Json());
  return {{"settings", settings}, {"figures", figures}};
}

void run_runs(const RunsFlags& options) {
  const bool named = !options.folders.empty();
  std::vector<RunSummary> runs;
  for (const std::string& folder : named ? options.folders : std::vector<std::string>{"runs"}) {
    check<FileError>(std::filesystem::is_directory(folder), folder, ": there is no such folder, expected one with runs",
                     named ? "" : "; heed train creates runs/TASK/NAME, or pass another folder: heed runs FOLDER");
    const std::vector<Path> found = runs_below(run_of_model(folder).empty() ? Path(folder) : run_of_model(folder));
    check<FileError>(!found.empty(), folder, ": found no runs, expected folders with a config.toml");
    for (const Path& run : found) runs.push_back(summarize_run(run));
  }
  const bool compare = options.compare || (options.folders.size() > 1 && runs.size() == options.folders.size());
  if (options.json) {
    Json list = Json::array();
    for (const RunSummary& run : runs) list.push_back(to_json(run));
    Json out{{"runs", list}};
    if (compare) out.update(comparison_json(runs));
    std::cout << out.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (compare) {
    compare_runs(runs);
  } else {
    list_runs(runs);
  }
  std::cout.flush();
  for (const RunSummary& run : runs)
    for (const std::string& damage : run.record.damaged) std::cerr << "heed: damaged: " << damage << '\n';
}

const Command runs_command("runs", "List or compare training runs", [](Flags& flags) {
  auto options = std::make_shared<RunsFlags>();
  flags.option("folders", options->folders, "Folders of runs (default: runs), or runs to compare").usage("[FOLDER|RUN ...]").no_default();
  flags
      .each(
          "--runs", [options](const std::string& folder) { options->more.push_back(folder); }, "One more folder of runs, as for heed train")
      .value("FOLDER");
  flags.flag("--compare", options->compare, "Compare metrics and differing settings of all runs in the folders");
  flags.flag("--json", options->json, "One JSON object");
  flags.footer(
      "State: finished; running; stopped by Ctrl-C; interrupted (killed); diverged; failed. heed train --resume RUN resumes\n"
      "any of them. A narrow terminal shows fewer columns; --json has all.\n\nExamples:\n  heed runs\n  heed runs runs/classify\n  heed "
      "runs runs/classify/001 runs/classify/002\n"
      "  heed runs runs/classify --compare --json");
  return [options] {
    options->folders.insert(options->folders.end(), options->more.begin(), options->more.end());
    run_runs(*options);
  };
});

}  // namespace
}  // namespace heed::cli
