#include "heed/cli/train_run.h"

#include <unistd.h>

#include <iomanip>
#include <iostream>

#include "heed/cli/progress.h"
#include "heed/cli/stop.h"
#include "heed/core/interrupt.h"
#include "heed/core/isa.h"
#include "heed/core/parallel.h"
#include "heed/train/resume.h"

namespace heed::cli {
namespace {

Json as_json(const Figures& figures) {
  Json out = Json::object();
  for (const auto& [name, value] : figures) out[name] = value;
  return out;
}

class Teller {
 public:
  explicit Teller(Output output)
      : output_(output),
        progress_(std::cout, {.live = output == Output::people && is_terminal(STDOUT_FILENO), .colour = has_colour(STDOUT_FILENO)}) {
    std::cout.exceptions(std::ios::goodbit);  // closed() tells: a run whose output nobody reads is saved, not lost in the middle of a step
  }

  bool closed() const { return !std::cout.good(); }

  Watch watch(const CatchStop& guard) {
    return {.step = [this](const StepDone& step) { progress_.step(step); },
            .epoch = [this](const EpochDone& epoch) { tell(epoch); },
            .say = [this](const std::string& text) { say(text); },
            .stop = [this, &guard] { return guard.asked() || closed(); }};
  }
  void say(const std::string& text) {
    if (output_ == Output::people) progress_.say(text);
    if (output_ == Output::json) std::cout << Json{{"event", "note"}, {"text", text}}.dump() << std::endl;
  }
  std::function<void(int64_t done, int64_t all)> reading() {
    return [this](int64_t done, int64_t all) { progress_.count("decoding images", done, all); };
  }
  void end(const FitResult& result, const RunFolder& run, const std::string& part, const Figures& figures) {
    if (output_ == Output::people) {
      say("best epoch: " + std::to_string(result.best_epoch) + "; on the " + part + " part: " + figures_text(figures));
      say("report: " + (run.path() / "report.html").string() + "\nmodel:  " + (run.path() / "best").string());
    }
    if (output_ == Output::json)
      std::cout << Json{{"event", "end"},
                        {"run", run.path().string()},
                        {"best_epoch", result.best_epoch},
                        {"steps", result.steps},
                        {"skipped", result.skipped},
                        {"part", part},
                        {"figures", as_json(figures)}}
                       .dump()
                << std::endl;
  }
  void tell(const EpochDone& epoch) {
    if (output_ == Output::people) progress_.epoch(epoch);
    if (output_ == Output::json)
      std::cout << Json{{"event", "epoch"},
                        {"epoch", epoch.epoch},
                        {"step", epoch.step},
                        {"best", epoch.best},
                        {"figures", as_json(epoch.figures)},
                        {"samples_per_second", epoch.samples_per_second},
                        {"share_of_peak", epoch.share_of_peak},
                        {"seconds", epoch.seconds}}
                       .dump()
                << std::endl;
  }

 private:
  const Output output_;
  Progress progress_;
};

void introduce(const Task& task, const Training& training, RunFolder& run, Teller& teller) {
  std::ostringstream text;
  text << training.kind().name << ": ";
  for (const auto& [part, count] : task.counts)
    text << count << " to " << (part == "train" ? "learn from" : part == "test" ? "test on" : "validate on") << ", ";
  text << task.model->architecture() << " with " << task.model->params().count() << " parameters, " << instruction_set()
       << ", threads: " << thread_count();
  run.log(text.str());
  teller.say(text.str());
  for (const std::string& note : training.notes()) teller.say(note);
  for (const std::string& note : task.notes) {
    run.log(note);
    teller.say(note);
  }
  teller.say("run: " + run.path().string() + " (config.toml there has every setting)");
}

void learn(const Task& task, const Training& training, RunFolder& run, Teller& teller, CatchStop& guard) {
  const std::string resume = "heed train --resume " + run.path().string();
  const Watch watch = teller.watch(guard);
  const FitResult result = fit(task, training.learning(), run, watch);
  const auto check_stopped = [&](bool stopped, const std::string& when) {
    check(!stopped || guard.asked() || !teller.closed(), "standard output: cannot write; stopped and saved ", when,
          "; go on with: ", resume);
    check<StoppedError>(!stopped, "train: stopped and saved ", when, "; go on with: ", resume);
  };
  check_stopped(result.ending == Ending::stopped, "after step " + std::to_string(result.steps));
  if (result.ending == Ending::patience) teller.say("stopped early: no better epoch since epoch " + std::to_string(result.best_epoch));
  if (result.skipped > 0) teller.say("skipped steps: " + std::to_string(result.skipped));
  Evaluation evaluation;
  try {
    const Interruptible by_person(watch.stop);
    evaluation = finish_run(task, run, result.best_epoch);
  } catch (const StoppedError&) {
    check_stopped(true, "while the best model was evaluated");
  }
  const std::string part = task.test ? "test" : "validation";
  teller.end(result, run, part, evaluation.figures);
}

// Learns while run.json says that the run is running, and says there in the end how it ended. A process that is killed leaves "running".
void learn_and_record(const Task& task, const Training& training, RunFolder& run, Teller& teller, CatchStop& guard, RunJson about) {
  about.metric = task.metric;
  about.settings = training.settings().json();
  about.data = task.data;
  const auto record = [&](const char* state) {
    about.state = state;
    write_run_json(run.path(), about);
  };
  record("running");
  try {
    learn(task, training, run, teller, guard);
  } catch (const Error& error) {
    const bool stopped = error.exit_code() == StoppedError("").exit_code() || teller.closed();
    try {
      record(stopped ? "stopped" : error.exit_code() == DivergedError("").exit_code() ? "diverged" : "failed");
    } catch (const Error&) {  // on a full disk, the first error is the one to tell
    }
    throw;
  }
  record("finished");
}

}  // namespace

Path train_anew(Training& training, const TrainRun& options) {
  CatchStop guard;
  Teller teller(options.output);
  const Task task = training.make(teller.reading());
  RunFolder run = RunFolder::create(options.runs, training.kind().name, options.name);
  write_settings(run, training.settings());
  guard.save_first();
  introduce(task, training, run, teller);
  learn_and_record(task, training, run, teller, guard, {.directory = std::filesystem::current_path().string()});
  return run.path();
}

Path train_on(const Path& folder, const std::vector<std::string>& words, const TrainRun& options) {
  CatchStop guard;
  Teller teller(options.output);
  Resumption resumption(folder, words);
  RunFolder run = RunFolder::open(folder);
  const Task task = resumption.make(teller.reading());
  guard.save_first();
  introduce(task, resumption.training(), run, teller);
  for (const std::string& note : resumption.notes()) run.log(note), teller.say(note);
  if (resumption.settings_changed()) rewrite_settings(run, resumption.training().settings());
  learn_and_record(task, resumption.training(), run, teller, guard, resumption.about());
  return run.path();
}

}  // namespace heed::cli
