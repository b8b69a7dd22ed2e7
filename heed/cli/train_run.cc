#include "heed/cli/train_run.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <thread>

#include "heed/cli/progress.h"
#include "heed/core/isa.h"
#include "heed/core/parallel.h"

namespace heed::cli {
namespace {

std::atomic<bool> asked_to_stop = false;

// The first Ctrl-C saves and ends the run; the second one ends the program at once. A thread of its own waits for them: no handler runs
// on top of a kernel.
class CatchStop {
 public:
  CatchStop() {
    asked_to_stop = false;
    sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM}) sigaddset(&signals_, number);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    waiting_ = std::thread([this] { wait(); });
  }
  ~CatchStop() {
    over_ = true;
    waiting_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  CatchStop(const CatchStop&) = delete;
  CatchStop& operator=(const CatchStop&) = delete;

 private:
  void wait() {
    using Clock = std::chrono::steady_clock;
    const timespec tenth{.tv_sec = 0, .tv_nsec = 100'000'000};
    Clock::time_point first = {};
    while (!over_) {
      if (sigtimedwait(&signals_, nullptr, &tenth) <= 0) continue;
      // Programs that end others may send a signal twice at once.
      if (asked_to_stop && Clock::now() - first > std::chrono::milliseconds(500)) _exit(130);
      if (!asked_to_stop.exchange(true)) first = Clock::now();
    }
  }

  sigset_t signals_, before_;
  std::atomic<bool> over_ = false;
  std::thread waiting_;
};

Json as_json(const Figures& figures) {
  Json out = Json::object();
  for (const auto& [name, value] : figures) out[name] = value;
  return out;
}

std::string readable(const Figures& figures) {
  std::ostringstream text;
  for (const auto& [name, value] : figures) text << (text.tellp() > 0 ? ", " : "") << name << ' ' << std::setprecision(4) << value;
  return text.str();
}

class Teller {
 public:
  explicit Teller(Output output)
      : output_(output), progress_(std::cout, output == Output::people && is_terminal_output(), terminal_width()) {}

  Watch watch() {
    return {.step = [this](const StepDone& step) { progress_.step(step); },
            .epoch = [this](const EpochDone& epoch) { tell(epoch); },
            .say = [this](const std::string& text) { say(text); },
            .stop = [] { return asked_to_stop.load(); }};
  }
  void say(const std::string& text) {
    if (output_ == Output::people) progress_.say(text);
    if (output_ == Output::json) std::cout << Json{{"event", "note"}, {"text", text}}.dump() << std::endl;
  }
  void end(const FitResult& result, const RunFolder& run, const std::string& part, const Figures& figures) {
    if (output_ == Output::people) {
      say("best epoch: " + std::to_string(result.best_epoch) + "; on the " + part + " part: " + readable(figures));
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
  teller.say("run: " + run.path().string() + " (config.toml there has every setting)");
}

void learn(const Task& task, const Training& training, RunFolder& run, Teller& teller) {
  const CatchStop guard;
  introduce(task, training, run, teller);
  const FitResult result = fit(task, training.learning(), run, teller.watch());
  check<StoppedError>(result.ending != Ending::stopped, "train: stopped and saved after step ", result.steps,
                      "; go on with: heed train --resume ", run.path().string());
  if (result.ending == Ending::patience) teller.say("stopped early: no better epoch since epoch " + std::to_string(result.best_epoch));
  if (result.skipped > 0) teller.say("skipped steps: " + std::to_string(result.skipped));
  const Evaluation evaluation = finish_run(task, run);
  const std::string part = task.test ? "test" : "validation";
  run.log("best epoch " + std::to_string(result.best_epoch) + ", on the " + part + " part: " + readable(evaluation.figures));
  teller.end(result, run, part, evaluation.figures);
}

}  // namespace

Path train_anew(Training& training, const TrainRun& options) {
  Teller teller(options.output);
  const Task task = training.make();
  RunFolder run = RunFolder::create(options.runs, training.kind().name, options.name);
  write_settings(run, training.settings());
  learn(task, training, run, teller);
  return run.path();
}

Path train_on(const Path& folder, const TrainRun& options) {
  Teller teller(options.output);
  const std::unique_ptr<Training> training = Training::resumed(folder);
  RunFolder run = RunFolder::open(folder);
  const Task task = training->make();
  learn(task, *training, run, teller);
  return run.path();
}

}  // namespace heed::cli
