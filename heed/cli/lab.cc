// heed lab: every claim about attention, run and judged.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/lab_heads.h"
#include "heed/cli/progress.h"
#include "heed/cli/stop.h"
#include "heed/core/interrupt.h"
#include "heed/lab/result.h"
#include "heed/lab/terminal.h"

namespace heed::cli {
namespace {

struct LabOptions {
  std::vector<std::string> words = {};
  std::string out = {};  // empty: the default of what is run
  std::string markdown = {};
  bool json = false, quiet = false, settings = false;
};

lab::Plan plan_of(const std::vector<std::string>& words) {
  lab::Plan plan;
  const auto add = [&](const lab::Experiment& experiment) {
    if (std::find(plan.experiments.begin(), plan.experiments.end(), &experiment) == plan.experiments.end())
      plan.experiments.push_back(&experiment);
  };
  for (const std::string& word : words) {
    if (word.find('=') != std::string::npos)
      plan.words.push_back(word);
    else if (word == "all")
      for (const lab::Experiment& experiment : lab::every_experiment()) add(experiment);
    else
      add(lab::experiment_named(word));
  }
  return plan;
}

lab::Terminal terminal_here() {
  return {.colour = has_colour(STDOUT_FILENO), .width = is_terminal(STDOUT_FILENO) ? std::min(terminal_width(), 140) : 100};
}

// One line on standard error that says what runs, where that is a terminal.
class LabProgress {
 public:
  explicit LabProgress(size_t experiments) : experiments_(experiments), live_(is_terminal(STDERR_FILENO)) {}
  ~LabProgress() { erase(); }  // an error must not be written behind it
  LabProgress(const LabProgress&) = delete;
  LabProgress& operator=(const LabProgress&) = delete;

  void begin(const lab::Experiment& experiment) {
    current_ = std::to_string(++begun_) + "/" + std::to_string(experiments_) + "  " + experiment.number + " " + experiment.name;
    say("");
  }
  void say(const std::string& line) const {
    if (!live_) return;
    // What wrapped could not be erased.
    const auto width = static_cast<size_t>(terminal_width(STDERR_FILENO));
    std::string text = current_ + (line.empty() ? "" : "  " + line);
    while (lab::wide(text) > width) text.pop_back();
    std::cerr << "\r\x1b[K" << text << std::flush;
  }
  void erase() const {
    if (live_) std::cerr << "\r\x1b[K" << std::flush;
  }

 private:
  size_t experiments_, begun_ = 0;
  bool live_;
  std::string current_ = {};
};

// An error, after everything is told and written, where a verdict is not as documented.
void check_verdicts(const std::vector<lab::Result>& results) {
  std::string others;
  size_t count = 0;
  for (const lab::Result& result : results) {
    if (result.as_documented()) continue;
    ++count;
    others += (others.empty() ? "" : ", ") + result.experiment->number + " " + result.experiment->name;
  }
  check(count == 0, "lab: ", count, " of ", results.size(), " verdicts not as documented: ", others);
}

// Runs one experiment after the other; the report in `out` has each of them as soon as it is done.
std::vector<lab::Result> run_plan(const lab::Plan& plan, const Path& out, const LabOptions& options, const lab::Terminal& terminal) {
  lab::ReportFolder folder(out);
  std::vector<lab::Result> results;
  LabProgress progress(plan.experiments.size());
  CatchStop guard;
  guard.save_first();
  const std::function<bool()> stop = [&] { return guard.asked(); };
  for (const lab::Experiment* experiment : plan.experiments) {
    progress.begin(*experiment);
    try {
      const Interruptible by_person(stop);
      results.push_back(lab::run_one(*experiment, plan.words, [&](const std::string& line) { progress.say(line); }));
    } catch (const StoppedError&) {
      fail<StoppedError>("lab: stopped after ", results.size(), " of ", plan.experiments.size(), " experiments",
                         results.empty() ? std::string() : "; what they found is in " + (out / "index.html").string());
    }
    progress.erase();
    folder.write(results);
    if (options.json || options.quiet) continue;
    lab::tell(std::cout, results.back(), terminal);
    std::cout << '\n' << std::flush;
  }
  return results;
}

void run_lab(const LabOptions& options) {
  if (!options.words.empty() && options.words[0] == "heads")
    return run_lab_heads({options.words.begin() + 1, options.words.end()}, options.out, options.json, options.quiet);
  const Path out = options.out.empty() ? "lab-report" : options.out;
  const lab::Plan plan = plan_of(options.words);
  const lab::Terminal terminal = terminal_here();
  if (plan.experiments.empty()) {
    check<UsageError>(plan.words.empty(), "lab: found settings and no experiment; heed lab lists them");
    lab::list_experiments(std::cout, terminal);
    std::cout << "\nheed lab NAME runs one, heed lab all every one of them; heed lab NAME --settings shows what can be set.\n";
    return;
  }
  lab::check_plan(plan);
  if (options.settings) {
    for (const lab::Experiment* experiment : plan.experiments)
      std::cout << experiment->number << ' ' << experiment->name << '\n' << lab::settings_help(*experiment);
    return;
  }
  const std::vector<lab::Result> results = run_plan(plan, out, options, terminal);
  if (!options.markdown.empty()) lab::write_markdown(options.markdown, results);
  if (options.json)
    std::cout << lab::results_json(results).dump(2) << '\n';
  else
    std::cout << (out / "index.html").string() << '\n';
  check_verdicts(results);
}

const Command lab_command("lab", "Claims about attention, each run and judged", [](Flags& flags) {
  auto options = std::make_shared<LabOptions>();
  flags.option("words", options->words, "Experiments by name or number, or all; then settings: key=value words")
      .shown("NAME|all ... [KEY=VALUE ...] | heads RUN")
      .many();
  flags.option("-o,--out", options->out, "Where the report goes: index.html, report.json and figures; lab-report unless it is said")
      .value("FOLDER")
      .no_default();
  flags.option("--markdown", options->markdown, "Write a page of Markdown for every topic there as well").value("FOLDER").no_default();
  flags.flag("--settings", options->settings, "List the settings of the experiments, and do nothing");
  flags.flag("--json", options->json, "Print the report as JSON");
  flags.flag("--quiet", options->quiet, "Print nothing but the name of the page");
  flags.footer(
      "Without words it lists the experiments. The report is written as results come: Ctrl-C leaves what was done.\nExit code 0: every "
      "verdict is as documented, 1: one is not.\n\nExamples:\n"
      "  heed lab\n  heed lab softmax-temperature\n  heed lab L7 samples=1000000 mean=1\n  heed lab L1 --settings\n"
      "  heed lab all -o lab-report\n  heed lab all full=true --quiet\n"
      "  heed lab heads runs/classify/001  the page and film of where a run's heads went, in RUN/heads");
  flags.completes([](const std::vector<std::string>& before) {
    std::vector<Candidate> out;
    if (!before.empty() && before[0] == "heads") return out;
    for (const lab::Experiment& each : lab::every_experiment()) out.push_back({each.name, each.number + " " + each.title});
    out.push_back({"all", "every one of them"});
    if (before.empty()) out.push_back({"heads", "where the heads of a run went"});
    return out;
  });
  return [options] { run_lab(*options); };
});

}  // namespace
}  // namespace heed::cli
