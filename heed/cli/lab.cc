// heed lab: runs experiments that test claims about attention.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "heed/cli/command.h"
#include "heed/cli/lab_heads.h"
#include "heed/cli/lab_processes.h"
#include "heed/cli/print_json.h"
#include "heed/cli/progress.h"
#include "heed/cli/signal_guard.h"
#include "heed/cli/terminal_text.h"
#include "heed/core/interrupt.h"
#include "heed/core/parse.h"
#include "heed/lab/cache.h"
#include "heed/lab/terminal.h"

namespace heed::cli {
namespace {

struct LabOptions {
  std::vector<std::string> arguments = {};
  std::string out = {};  // empty: the default of what is run
  std::string markdown = {};
  Device gpu = kCpu;  // where full=true trains; the CPU if there is none
  bool json = false, quiet = false, settings = false, fresh = false, twice = false;
};

lab::Plan plan_of(const std::vector<std::string>& arguments) {
  lab::Plan plan;
  const auto add = [&](const lab::Experiment& experiment) {
    if (std::find(plan.experiments.begin(), plan.experiments.end(), &experiment) == plan.experiments.end())
      plan.experiments.push_back(&experiment);
  };
  for (const std::string& argument : arguments) {
    if (parse_key_value(argument))
      plan.settings.push_back(argument);
    else if (argument == "all")
      for (const lab::Experiment& experiment : lab::all_experiments()) add(experiment);
    else
      add(lab::find_experiment(argument));
  }
  return plan;
}

// The list of experiments, with the names of /api/lab.
Json experiments_json() {
  Json out = Json::array();
  for (const lab::Experiment& each : lab::all_experiments())
    out.push_back({{"number", each.number}, {"name", each.name}, {"topic", lab::title_of(each.topic)}, {"title", each.title}});
  return out;
}

lab::Terminal terminal_here() {
  return {.colour = has_colour(STDOUT_FILENO), .width = is_terminal(STDOUT_FILENO) ? std::min(terminal_width(), 140) : 100};
}

// A live line on standard error with the current experiment, if it is a terminal.
class LabProgress {
 public:
  explicit LabProgress(size_t experiments) : experiments_(experiments), live_(is_terminal(STDERR_FILENO)) {}
  ~LabProgress() { erase(); }  // an error message must not be appended to it
  LabProgress(const LabProgress&) = delete;
  LabProgress& operator=(const LabProgress&) = delete;

  void start(const lab::Experiment& experiment) {
    current_ = std::to_string(++started_) + "/" + std::to_string(experiments_) + "  " + experiment.number + " " + experiment.name;
    say("");
  }
  void say(const std::string& line) const {
    if (!live_) return;
    // A wrapped line could not be erased.
    const auto width = static_cast<size_t>(terminal_width(STDERR_FILENO));
    std::string text = current_ + (line.empty() ? "" : "  " + line);
    while (lab::display_width(text) > width) text.pop_back();
    std::cerr << "\r\x1b[K" << text << std::flush;
  }
  void erase() const {
    if (live_) std::cerr << "\r\x1b[K" << std::flush;
  }

 private:
  size_t experiments_, started_ = 0;
  bool live_;
  std::string current_ = {};
};

// Called after all output: throws if a verdict is not as documented.
void check_verdicts(const std::vector<lab::Result>& results) {
  std::string unexpected;
  size_t count = 0;
  for (const lab::Result& result : results) {
    if (result.as_documented()) continue;
    ++count;
    unexpected += (unexpected.empty() ? "" : ", ") + result.experiment->number + " " + result.experiment->name;
  }
  check(count == 0, "lab: ", count, " of ", results.size(), " verdicts not as documented: ", unexpected);
}

struct LabResults {
  std::vector<lab::Result> usual = {}, twice = {};  // in the order of the plan. twice: of experiments that train, with twice the budget
};

std::vector<std::string> with_twice_the_budget(std::vector<std::string> settings) {
  settings.emplace_back("budget=2");
  return settings;
}

// The same experiments, those first that take seconds, and last those that train models and measure time.
std::vector<const lab::Experiment*> quickest_first(std::vector<const lab::Experiment*> experiments) {
  const auto stage = [](const lab::Experiment* each) { return !lab::trains_models(*each) ? 0 : each->timed ? 2 : 1; };
  std::stable_sort(experiments.begin(), experiments.end(),
                   [&](const lab::Experiment* a, const lab::Experiment* b) { return stage(a) < stage(b); });
  return experiments;
}

// The settings of every training of the plan: its own, and those with twice the budget.
std::vector<std::vector<std::string>> budgets_of(const lab::Plan& plan, const LabOptions& options) {
  std::vector<std::vector<std::string>> out{plan.settings};
  if (options.twice) out.push_back(with_twice_the_budget(plan.settings));
  return out;
}

// Experiments of the plan whose models are still to be trained, and that can be trained side by side. Without a cache, processes could not
// give back what they found.
std::vector<LabJob> training_jobs(const lab::Plan& plan, const LabOptions& options, const lab::ReportCache& cache) {
  std::vector<LabJob> out;
  if (options.gpu != kCpu || !cache.can_keep()) return out;
  for (const lab::Experiment* experiment : plan.experiments) {
    if (!lab::trains_models(*experiment) || experiment->timed) continue;
    for (const auto& settings : budgets_of(plan, options))
      if (!cache.find(experiment->name, lab::effective_settings(*experiment, settings)))
        out.push_back({experiment, lab::settings_for(*experiment, settings)});
  }
  return out;
}

void forget_results(const lab::Plan& plan, const LabOptions& options, const lab::ReportCache& cache) {
  for (const lab::Experiment* experiment : plan.experiments)
    if (lab::trains_models(*experiment))
      for (const auto& settings : budgets_of(plan, options)) cache.forget(experiment->name, lab::effective_settings(*experiment, settings));
}

// Inserts a result where the plan has its experiment.
void insert_in_order(std::vector<lab::Result>& results, const lab::Plan& plan, const lab::Result& result) {
  const auto place = [&](const lab::Result& each) { return std::find(plan.experiments.begin(), plan.experiments.end(), each.experiment); };
  results.insert(std::find_if(results.begin(), results.end(), [&](const lab::Result& each) { return place(each) > place(result); }),
                 result);
}

// Runs the experiments; the report in `out` is updated after each.
LabResults run_plan(const lab::Plan& plan, const Path& out, const LabOptions& options, const lab::Terminal& terminal) {
  lab::ReportFolder folder(out);
  LabResults results;
  LabProgress progress(plan.experiments.size());
  SignalGuard guard;
  guard.save_first();
  const std::function<bool()> stop = [&] { return guard.stop_requested(); };
  const auto say = [&](const std::string& line) { progress.say(line); };
  const lab::ReportCache cache(lab::cache_folder());
  if (options.fresh) forget_results(plan, options, cache);
  std::optional<LabProcesses> processes;  // started after the experiments that train nothing, some of which measure time
  for (const lab::Experiment* experiment : quickest_first(plan.experiments)) {
    progress.start(*experiment);
    const bool repeats = options.twice && lab::trains_models(*experiment);
    lab::Result result, repeated;
    try {
      const Interruptible interruptible(stop);
      if (lab::trains_models(*experiment)) {
        if (!processes) processes.emplace(training_jobs(plan, options, cache));
        processes->wait_for(*experiment, stop, say);
      }
      const auto run = [&](const std::vector<std::string>& settings) {
        return lab::run_or_find(*experiment, settings, say, cache, options.gpu);
      };
      result = run(plan.settings);
      if (repeats) repeated = run(with_twice_the_budget(plan.settings));
    } catch (const StoppedError&) {
      fail<StoppedError>("lab: stopped after ", results.usual.size(), " of ", plan.experiments.size(), " experiments",
                         results.usual.empty() ? std::string() : "; their results are in " + (out / "index.html").string());
    }
    progress.erase();
    insert_in_order(results.usual, plan, result);
    if (repeats) insert_in_order(results.twice, plan, repeated);
    folder.write(results.usual);
    if (options.json || options.quiet) continue;
    lab::print_result(std::cout, result, terminal);
    if (repeats) {
      std::cout << "\nwith twice the budget:\n";
      lab::print_result(std::cout, repeated, terminal);
    }
    std::cout << '\n' << std::flush;
  }
  return results;
}

void run_lab(const LabOptions& options) {
  if (!options.arguments.empty() && options.arguments[0] == "heads")
    return run_lab_heads({options.arguments.begin() + 1, options.arguments.end()}, options.out, options.json, options.quiet);
  const Path out = options.out.empty() ? "lab-report" : options.out;
  const lab::Plan plan = plan_of(options.arguments);
  const lab::Terminal terminal = terminal_here();
  if (plan.experiments.empty()) {
    check<UsageError>(plan.settings.empty(), "lab: found settings but no experiment; heed lab lists the experiments");
    if (options.json) return print_json_line({{"experiments", experiments_json()}});
    lab::list_experiments(std::cout, terminal);
    std::cout << "\nheed lab NAME runs one experiment, heed lab all runs all; heed lab NAME --settings lists its settings.\n";
    return;
  }
  lab::check_plan(plan);
  if (options.settings) {
    for (const lab::Experiment* experiment : plan.experiments)
      std::cout << experiment->number << ' ' << experiment->name << '\n' << for_terminal(lab::settings_help(*experiment));
    return;
  }
  const auto [results, twice] = run_plan(plan, out, options, terminal);
  if (!options.markdown.empty()) lab::write_markdown(options.markdown, results, twice);
  if (options.json) {
    Json json = lab::results_json(results);
    if (options.twice) json["twice"] = lab::results_json(twice).at("experiments");
    std::cout << json.dump(2) << '\n';
  } else {
    std::cout << (out / "index.html").string() << '\n';
  }
  check_verdicts(results);
}

const Command lab_command("lab", "Test claims about attention by experiment", [](Flags& flags) {
  auto options = std::make_shared<LabOptions>();
  flags.option("arguments", options->arguments, "Experiments by name or number, or all; then settings as key=value")
      .usage("NAME|all ... [KEY=VALUE ...] | heads RUN")
      .many();
  flags.option(kOutputFlag, options->out, "Folder of the report: index.html, report.json and figures; lab-report by default")
      .value("FOLDER")
      .no_default();
  flags.option("--markdown", options->markdown, "Also write a Markdown page per topic to this folder").value("FOLDER").no_default();
  flags.flag("--settings", options->settings, "List the settings of the experiments and exit");
  flags.flag("--fresh", options->fresh, "Run experiments again even if their results are in the cache");
  flags.flag("--twice", options->twice,
             "Repeat experiments that train models with twice the epochs and steps, to see whether the verdict stays the same");
  flags.flag("--json", options->json, "Print the report, or the list of experiments, as JSON");
  flags.flag("--quiet", options->quiet, "Print only the path of the report");
  flags.footer(
      "Without arguments it lists the experiments. The report is updated after each one, so Ctrl-C keeps finished results.\nExit code 0: "
      "every "
      "verdict is as documented, 1: one is not.\n\nExamples:\n"
      "  heed lab\n  heed lab softmax-temperature\n  heed lab L7 samples=1000000 mean=1\n  heed lab L1 --settings\n"
      "  heed lab all -o lab-report\n  heed lab all full=true --quiet\n"
      "  heed lab heads runs/classify/001  a page and an animation of where a run's heads look, in RUN/heads");
  flags.completes([](const std::vector<std::string>& before) {
    std::vector<Candidate> out;
    if (!before.empty() && before[0] == "heads") return out;
    for (const lab::Experiment& each : lab::all_experiments()) out.push_back({each.name, each.number + " " + each.title});
    out.push_back({"all", "all experiments"});
    if (before.empty()) out.push_back({"heads", "positions of the heads of a run"});
    return out;
  });
  return [options] {
    options->gpu = default_device();
    set_default_device(kCpu);  // experiments compare with references on the CPU
    run_lab(*options);
  };
});

}  // namespace
}  // namespace heed::cli
