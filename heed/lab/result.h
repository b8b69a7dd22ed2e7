// Experiments that were run, and how they are told: on a terminal, as JSON, as a page, as a folder with all of it.
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "heed/io/json.h"
#include "heed/lab/experiment.h"

namespace heed::lab {

struct Result {
  const Experiment* experiment = nullptr;
  Report report = {};
  Verdict verdict = Verdict::fails;
  std::string error = {};  // why it did not come to its end
  Json settings = {};      // in force
  double seconds = 0;

  bool as_documented() const { return error.empty() && verdict == experiment->expected; }
};

// words: key=value. Each must be a setting of one experiment at least; "full=true" is one of all.
struct Plan {
  std::vector<const Experiment*> experiments = {};
  std::vector<std::string> words = {};
};
void check_plan(const Plan& plan);  // names, keys and values, before anything runs
Result run_one(const Experiment& experiment, const std::vector<std::string>& words, const Say& say);
std::string settings_help(const Experiment& experiment);

// --- telling
struct Terminal {
  bool colour = false;
  int width = 80;
};
void list_experiments(std::ostream& out, const Terminal& terminal);
void tell(std::ostream& out, const Result& result, const Terminal& terminal);
Json result_json(const Result& result);
Json results_json(std::span<const Result> results);
std::string results_page(std::span<const Result> results);

// A folder with index.html, report.json and figures/, which grows while experiments run. An earlier report in it is replaced by the first
// write; a folder with anything else in it is refused.
class ReportFolder {
 public:
  explicit ReportFolder(Path folder);

  void write(std::span<const Result> results);  // all so far; figures of those that it has are not drawn again

 private:
  Path folder_;
  size_t written_ = 0;
};
void write_markdown(const Path& folder, std::span<const Result> results);  // a page for every topic, beside what is there
std::string figure_file(const Experiment& experiment, size_t figure, size_t frame, size_t frames);  // without its end: "l01-1", "l01-2-03"

}  // namespace heed::lab
