// Results of experiments and their output: terminal, JSON, HTML page, and a folder with everything.
#pragma once

#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "heed/core/device.h"
#include "heed/io/json.h"
#include "heed/lab/experiment.h"

namespace heed::lab {

struct Result {
  const Experiment* experiment = nullptr;
  Report report = {};
  Verdict verdict = Verdict::fails;
  std::string error = {};  // why it was aborted
  Json settings = {};      // effective values
  double seconds = 0;

  // Settings at which the published claim is right, or which cannot decide, contradict nothing.
  bool as_documented() const {
    const bool agrees = verdict == Verdict::holds && !report.agrees.empty();
    return error.empty() && (verdict == experiment->expected || verdict == Verdict::undecided || agrees);
  }
};

// settings: key=value. Each must be a setting of at least one of the experiments; "full=true" belongs to all.
struct Plan {
  std::vector<const Experiment*> experiments = {};
  std::vector<std::string> settings = {};
};
void check_plan(const Plan& plan);  // checks names, keys and values before anything runs
// gpu: where full=true trains the models of some experiments (Experiment::gpu); the CPU: everything runs there
Result run_one(const Experiment& experiment, const std::vector<std::string>& settings, const ProgressCallback& progress, Device gpu = kCpu);
Json effective_settings(const Experiment& experiment, const std::vector<std::string>& settings);  // all of them, with their defaults
std::vector<std::string> settings_for(const Experiment& experiment, const std::vector<std::string>& settings);  // those that it has
std::string settings_help(const Experiment& experiment);
std::vector<SettingInfo> settings_of(const Experiment& experiment);

// --- output
struct Terminal {
  bool colour = false;
  int width = 80;
};
void list_experiments(std::ostream& out, const Terminal& terminal);
void print_result(std::ostream& out, const Result& result, const Terminal& terminal);
Json result_json(const Result& result);
Json results_json(std::span<const Result> results);
std::string results_page(std::span<const Result> results);

// A folder with index.html, report.json and figures/, updated after each experiment. The first write replaces an earlier report; a folder
// with other files is refused.
class ReportFolder {
 public:
  explicit ReportFolder(Path folder);

  void write(std::span<const Result> results);  // all results so far, in the order of the page; only the figures of new ones are drawn

 private:
  Path folder_;
  std::set<const Experiment*> drawn_ = {};
};
// A page per topic and per course, next to existing files. twice: results of experiments that train, with twice the budget; may be empty
void write_markdown(const Path& folder, std::span<const Result> results, std::span<const Result> twice = {});
std::string figure_file(const Experiment& experiment, size_t figure, size_t frame,
                        size_t frames);  // without extension: "L1-softmax-temperature-2-03"

}  // namespace heed::lab
