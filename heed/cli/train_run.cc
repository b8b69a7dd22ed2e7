#include "heed/cli/train_run.h"

#include <unistd.h>

#include <cmath>
#include <iomanip>
#include <iostream>
#include <optional>

#include "heed/cli/print_json.h"
#include "heed/cli/progress.h"
#include "heed/cli/shell_word.h"
#include "heed/cli/signal_guard.h"
#include "heed/core/interrupt.h"
#include "heed/core/isa.h"
#include "heed/core/parallel.h"
#include "heed/dist/group.h"
#include "heed/train/resume.h"
#include "heed/train/same_job.h"

namespace heed::cli {
namespace {

Json as_json(const Metrics& figures) {
  Json out = Json::object();
  for (const auto& [name, value] : figures) out[name] = value;
  return out;
}

class TrainOutput {
 public:
  explicit TrainOutput(Output output)
      : output_(output),
        progress_(std::cout, {.live = output == Output::people && is_terminal(STDOUT_FILENO) && world().size() == 1,
                              .colour = has_colour(STDOUT_FILENO)}) {
    std::cout.exceptions(std::ios::goodbit);  // closed() is polled instead, so that a run with a closed output is saved, not lost
  }

  bool closed() const { return !std::cout.good(); }

  TrainCallbacks callbacks(const SignalGuard& guard) {
    return {.step = [this](const StepInfo& step) { progress_.step(step); },
            .epoch = [this](const EpochInfo& epoch) { print(epoch); },
            .say = [this](const std::string& text) { say(text); },
            .stop = [this, &guard] { return guard.stop_requested() || closed(); }};
  }
  void say(const std::string& text) {
    if (output_ == Output::people) progress_.say(text);
    print_event({{"event", "note"}, {"text", text}});
  }
  std::function<void(int64_t done, int64_t all)> read_progress() {
    return [this](int64_t done, int64_t all) { progress_.count("decoding images", done, all); };
  }
  void end(const TrainResult& result, const RunFolder& run, const std::string& part, const Metrics& figures) {
    if (output_ == Output::people) {
      say("best epoch: " + std::to_string(result.best_epoch) + "; on the " + part + " part: " + figures_text(figures));
      say("report: " + (run.path() / "report.html").string() + "\nmodel:  " + (run.path() / "best").string());
      if (result.ending == StopReason::complete && result.epochs > 1 && result.best_epoch == result.epochs)
        say("The last epoch is the best, so more may help: heed train --resume " + shell_word(run.path().string()) +
            " epochs=" + std::to_string(2 * result.epochs));
    }
    print_event({{"event", "end"},
                 {"run", run.path().string()},
                 {"best_epoch", result.best_epoch},
                 {"steps", result.steps},
                 {"skipped", result.skipped},
                 {"part", part},
                 {"figures", as_json(figures)}});
  }
  void print(const EpochInfo& epoch) {
    if (output_ == Output::people) progress_.epoch(epoch);
    print_event({{"event", "epoch"},
                 {"epoch", epoch.epoch},
                 {"step", epoch.step},
                 {"best", epoch.best},
                 {"figures", as_json(epoch.figures)},
                 {"samples_per_second", epoch.samples_per_second},
                 {"share_of_peak", epoch.share_of_peak},
                 {"seconds", epoch.seconds}});
  }

 private:
  void print_event(const Json& event) const {
    if (output_ != Output::json) return;
    print_json_line(event);  // also of paths that are not UTF-8
    std::cout.flush();
  }

  const Output output_;
  Progress progress_;
};

std::string processes_text(const Group& group) {
  if (group.size() == 1) return "";
  const int hosts = group.host_count();
  return " each, " + std::to_string(group.size()) + " processes on " + std::to_string(hosts) + (hosts == 1 ? " host" : " hosts");
}

void print_header(const Task& task, const TrainingJob& training, RunFolder& run, TrainOutput& out) {
  std::ostringstream text;
  text << training.kind().name << ": ";
  for (const auto& [part, count] : task.counts)
    text << count << " to " << (part == "train" ? "train on" : part == "test" ? "test on" : "validate on") << ", ";
  text << task.model->architecture() << " with " << task.model->params().count() << " parameters, " << instruction_set()
       << ", threads: " << thread_count() << processes_text(world());
  const auto say = [&](const std::string& line) {
    if (world().is_first()) run.log(line);
    out.say(line);
  };
  say(text.str());
  for (const std::string& note : training.notes()) out.say(note);
  for (const std::string& note : task.notes) say(note);
  out.say("run: " + run.path().string() + " (config.toml there has every setting)");
}

void train(const Task& task, const TrainingJob& training, RunFolder& run, TrainOutput& out, SignalGuard& guard) {
  const std::string resume = "heed train --resume " + shell_word(run.path().string());
  const TrainCallbacks callbacks = out.callbacks(guard);
  const TrainResult result = train_model(task, training.train_options(), run, callbacks);
  const auto check_stopped = [&](bool stopped, const std::string& when) {
    check(!stopped || guard.stop_requested() || !out.closed(), "standard output: cannot write; stopped and saved ", when,
          "; resume with: ", resume);
    check<StoppedError>(!stopped, "train: stopped and saved ", when, "; resume with: ", resume);
  };
  check_stopped(result.ending == StopReason::stopped, "after step " + std::to_string(result.steps));
  if (result.ending == StopReason::patience) out.say("stopped early: no better epoch since epoch " + std::to_string(result.best_epoch));
  if (result.skipped > 0) out.say("skipped steps: " + std::to_string(result.skipped));
  Evaluation evaluation;
  try {
    const Interruptible interruptible(callbacks.stop, world().size() == 1);
    evaluation = finish_run(task, run, result.best_epoch);
  } catch (const StoppedError&) {
    check_stopped(true, "while the best model was evaluated");
  }
  const std::string part = task.test ? "test" : "validation";
  for (const auto& [name, value] : evaluation.figures)
    check<DivergedError>(name != "loss" || std::isfinite(value), training.kind().name, ": the best model has the ", part, " loss ", value,
                         ": the last steps were too large; try a lower rate or clip");
  out.end(result, run, part, evaluation.figures);
}

// Trains with the state "running" in run.json, and records there how the run ended. A killed process leaves "running".
void train_and_record(const Task& task, const TrainingJob& training, RunFolder& run, TrainOutput& out, SignalGuard& guard, RunJson about) {
  about.metric = task.metric;
  about.settings = training.settings().json();
  about.data = task.data;
  const auto record = [&](const char* state) {
    about.state = state;
    if (world().is_first()) write_run_json(run.path(), about);
  };
  record("running");
  try {
    train(task, training, run, out, guard);
  } catch (const Error& error) {
    const bool stopped = error.exit_code() == StoppedError("").exit_code() || out.closed();
    try {
      record(stopped ? "stopped" : error.exit_code() == DivergedError("").exit_code() ? "diverged" : "failed");
    } catch (const Error&) {  // for example a full disk: report the first error
    }
    throw;
  }
  record("finished");
}

}  // namespace

Path start_training(TrainingJob& training, const TrainRun& options) {
  SignalGuard guard;
  TrainOutput out(options.output);
  check_same_settings(world(), training.settings());
  const Task task = training.make(out.read_progress());
  check_same_data(world(), task);
  const auto create = [&] {
    RunFolder run = RunFolder::create(options.runs, training.kind().name, options.name);
    write_settings(run, training.settings());
    return run;
  };
  std::optional<RunFolder> run;
  if (world().is_first()) run.emplace(create());
  const std::string path = world().broadcast(run ? run->path().string() : "", 0);
  if (!run) run.emplace(RunFolder::of_first_process(path));
  guard.save_first();
  print_header(task, training, *run, out);
  train_and_record(task, training, *run, out, guard, {.directory = std::filesystem::current_path().string()});
  return run->path();
}

Path resume_training(const Path& folder, const std::vector<std::string>& settings, const TrainRun& options) {
  SignalGuard guard;
  TrainOutput out(options.output);
  ResumedRun resumption(folder, settings);
  check_same_settings(world(), resumption.training().settings());
  RunFolder run = RunFolder::open(folder);
  const Task task = resumption.make(out.read_progress());
  check_same_data(world(), task);
  guard.save_first();
  print_header(task, resumption.training(), run, out);
  for (const std::string& note : resumption.notes()) {
    if (world().is_first()) run.log(note);
    out.say(note);
  }
  if (resumption.settings_changed() && world().is_first()) rewrite_settings(run, resumption.training().settings());
  train_and_record(task, resumption.training(), run, out, guard, resumption.about());
  return run.path();
}

}  // namespace heed::cli
