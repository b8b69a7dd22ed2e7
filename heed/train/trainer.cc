#include "heed/train/trainer.h"

#include <cmath>
#include <limits>

#include "heed/core/interrupt.h"
#include "heed/core/memory.h"
#include "heed/dist/split_work.h"
#include "heed/train/batch_order.h"
#include "heed/train/diverged.h"
#include "heed/train/epoch_record.h"
#include "heed/train/head_record.h"
#include "heed/train/loader.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/scores.h"
#include "heed/train/step_runner.h"
#include "heed/train/throughput.h"
#include "heed/train/train_state.h"

namespace heed {
namespace {

// A killed run loses at most this much work.
constexpr double kSaveSeconds = 120;

class Trainer {
 public:
  Trainer(const Task& task, const TrainOptions& options, RunFolder& run, const TrainCallbacks& callbacks)
      : task_(task),
        options_(options),
        run_(run),
        callbacks_(callbacks),
        optimizer_(*task.model, options),
        steps_(task, optimizer_, options, state_.rng, group_),
        checkpoints_(run.path() / "checkpoints") {
    metric_ = options.best.empty() ? task.metric : options.best;
    state_.rng = Rng(options.seed);
  }

  TrainResult run() {
    begin();
    bool stopped = false;
    while (!state_.over && !stopped) stopped = !epoch();
    const StopReason ending = stopped ? StopReason::stopped : out_of_patience() ? StopReason::patience : StopReason::complete;
    return {.ending = ending,
            .epochs = state_.epoch,
            .steps = state_.step,
            .skipped = state_.skipped,
            .best_epoch = state_.best_epoch,
            .best = state_.best};
  }

 private:
  void say(const std::string& text) {
    if (!group_.is_first()) return;
    run_.log(text);
    if (callbacks_.say) callbacks_.say(text);
  }
  int64_t steps_in(size_t batches) const { return (static_cast<int64_t>(batches) + options_.accumulate - 1) / options_.accumulate; }

  void begin() {
    const size_t batches = task_.batches(0).size();
    check(batches > 0, task_.name, ": found no training data");
    all_steps_ = options_.epochs * steps_in(batches);
    if (options_.steps > 0) all_steps_ = std::min(all_steps_, options_.steps);
    restore();
    if (default_device() == kCpu) peak_.measure();
    window_ = {};
    started_ = window_.start;
  }

  // The first process reads the newest checkpoint, or starts from scratch. The others get its weights and state.
  void restore() {
    std::string stored;
    if (group_.is_first()) {
      const std::optional<Checkpoint> found = checkpoints_.newest([&](const std::string& text) { say(text); });
      if (found) {
        stored = found->state.dump();
        optimizer_.load(found->tensors, found->state.at("optimizer_steps").get<int64_t>(), (run_.path() / "checkpoints").string());
        run_.rewind(found->state.at("files"));
      } else {
        const Json mark = run_.mark();
        if (mark.at("metrics.jsonl").get<int64_t>() + mark.value("heads.jsonl", int64_t{0}) > 0) {
          say("found no usable checkpoint: training starts from scratch");
          run_.rewind({}, 0);
        }
        record_heads(run_, *task_.model, 0, 0);
      }
    }
    stored = group_.broadcast(stored, 0);
    optimizer_.broadcast();
    if (stored.empty()) return save();
    const Json state = Json::parse(stored);
    state_ = train_state_from(state.at("fit"));
    if (state_.over) state_.over = is_over();  // epochs or steps may have been increased
    const char* const over = state_.over ? ": the run is finished; with epochs=N it is trained further" : "";
    if (state_.step > 0) say("resumes from step " + std::to_string(state_.step) + " of " + std::to_string(all_steps_) + over);
    const std::string change = schedule_change(options_, state_.step, state.value("all_steps", all_steps_), all_steps_);
    if (!change.empty()) say(change);
  }

  void save() {
    NamedTensors tensors = optimizer_.tensors();
    if (!group_.is_first()) return;
    const Json state{{"fit", to_json(state_)}, {"optimizer_steps", optimizer_.steps()}, {"files", run_.mark()}, {"all_steps", all_steps_}};
    checkpoints_.write(state_.step, {std::move(tensors), state});
    if (group_.size() > 1 && options_.shard_optimizer) release_cached_memory(kCpu);  // of the state of the other processes
    saved_ = Clock::now();
  }
  bool stop_requested_here() const { return callbacks_.stop && callbacks_.stop(); }
  // The same in all processes.
  bool asked_to_stop() const { return any_of(group_, stop_requested_here()); }
  // Returns false if a stop was requested.
  bool epoch() {
    const Batches batches = task_.batches(state_.epoch);
    const std::span done = std::span(batches).first(static_cast<size_t>(std::min(state_.batch, std::ssize(batches))));
    Loader loader(
        steps_.shards().own_batches(batches, options_.accumulate), steps_.shards().own_batches(done, options_.accumulate).size(),
        [&, now = state_.epoch](const std::vector<int64_t>& samples) { return task_.batch(now, samples); }, options_.loaders);
    const Clock::time_point start = Clock::now();
    Throughput throughput;
    while (state_.batch < std::ssize(batches) && !reached_last_step()) {
      const StepFigures figures = step(loader, batches, throughput);
      if (figures.stop || (group_.size() == 1 && stop_requested_here())) {
        save();
        return false;
      }
      const bool due = options_.save_every > 0 && state_.step % options_.save_every == 0;
      if (due || figures.save) save();
    }
    if (!end_epoch(start, throughput)) {
      save();
      return false;
    }
    return state_.over || !asked_to_stop();
  }

  bool is_over() const { return state_.epoch >= options_.epochs || reached_last_step() || out_of_patience(); }
  bool out_of_patience() const { return options_.patience > 0 && state_.epochs_since_best >= options_.patience; }
  bool reached_last_step() const { return options_.steps > 0 && state_.step >= options_.steps; }

  bool save_is_due() const { return seconds_since(saved_) > kSaveSeconds; }

  StepFigures step(Loader& loader, const Batches& batches, Throughput& throughput) {
    before_step_ = state_;
    rate_ = rate_at(options_, state_.step, all_steps_);
    const int64_t count = std::min(options_.accumulate, std::ssize(batches) - state_.batch);
    const StepFigures figures = steps_.run(
        std::span(batches).subspan(static_cast<size_t>(state_.batch), static_cast<size_t>(count)), [&] { return loader.next(); },
        static_cast<float>(rate_), group_.size() > 1 && stop_requested_here(), save_is_due());
    norm_ = figures.norm;
    state_.batch += count;
    if (figures.problem) {
      diverge(*figures.problem);
    } else {
      add_to_means(figures, throughput);
    }
    ++state_.step;
    ++steps_here_;
    report_step((state_.batch + options_.accumulate - 1) / options_.accumulate, steps_in(batches.size()));
    return figures;
  }

  void add_to_means(const StepFigures& figures, Throughput& throughput) {
    for (const PartFigures& part : figures.parts) {
      const auto samples = static_cast<double>(part.samples);
      state_.loss.add({part.loss * samples, samples});
      for (const auto& [name, mean] : part.metrics) state_.metrics[name].add(mean);
      // The peak is that of one process.
      for (Throughput* each : {&throughput, &window_}) each->add(samples, part.multiply_adds / group_.size());
    }
  }

  // Returns if the step is skipped, else throws.
  void diverge(const StepProblem& problem) {
    std::ostringstream text;
    text << task_.name << ": " << problem.found << " in epoch " << state_.epoch + 1 << ", step " << state_.step + 1 << ": "
         << problem.where;
    if (options_.on_nan == "skip") {
      say(text.str() + ". The step is skipped");
      ++state_.skipped;
      return;
    }
    const bool usable = all_finite(optimizer_.parameters());
    if (usable) state_ = before_step_, save();
    text << (usable ? ". The state before this step is saved in " : ". The last good state is in ")
         << (run_.path() / "checkpoints").string();
    if (group_.is_first()) run_.log(text.str());
    fail<DivergedError>(text.str(), "; try a lower rate or clip, or on_nan=skip");
  }

  Metrics means() const {
    Metrics out{{"loss", state_.loss.sum / state_.loss.count}};
    for (const auto& [name, mean] : state_.metrics) out.emplace_back(name, mean.sum / mean.count);
    return out;
  }

  void report_step(int64_t step, int64_t steps) {
    const StepInfo done{
        .epoch = state_.epoch + 1,
        .epochs = options_.epochs,
        .step = step,
        .steps = steps,
        .all_step = state_.step,
        .all_steps = all_steps_,
        .means = means(),
        .rate = rate_,
        .gradient_norm = norm_,
        .samples_per_second = window_.samples_per_second(),
        .share_of_peak = peak_.share(window_),
        .seconds_left = seconds_since(started_) / static_cast<double>(steps_here_) * static_cast<double>(all_steps_ - state_.step)};
    if (state_.step % options_.log_every == 0 && group_.is_first()) {
      Metrics row;
      for (const auto& [name, value] : done.means) row.emplace_back("train_" + name, value);
      row.emplace_back("rate", rate_);
      row.emplace_back("gradient_norm", norm_);
      run_.add_step(state_.epoch + 1, state_.step, row);
    }
    if (callbacks_.step) callbacks_.step(done);
    if (seconds_since(window_.start) > 5) {
      peak_.correct(window_);
      window_ = {};
    }
  }

  // Returns false if a stop was requested during the evaluation. Nothing is written then; a resumed run repeats it.
  bool end_epoch(Clock::time_point start, const Throughput& throughput) {
    EpochInfo done{.epoch = state_.epoch + 1, .epochs = options_.epochs, .step = state_.step};
    for (const auto& [name, value] : means()) done.figures.emplace_back("train_" + name, value);
    done.samples_per_second = throughput.samples_per_second();
    peak_.correct(throughput);
    done.share_of_peak = peak_.share(throughput);
    const std::optional<Evaluation> evaluation = evaluated();
    if (!evaluation) return false;
    for (const auto& [name, value] : evaluation->figures) done.figures.emplace_back("validation_" + name, value);
    done.figures.emplace_back("rate", rate_at(options_, std::max<int64_t>(state_.step - 1, 0), all_steps_));
    done.best = update_best(*evaluation);
    done.seconds = seconds_since(start);
    if (group_.is_first()) record_epoch(run_, task_, optimizer_, done);
    next_epoch();
    if (callbacks_.epoch) callbacks_.epoch(done);
    return true;
  }

  // On the validation part, with the averaged weights if there are any: they are what is saved.
  std::optional<Evaluation> evaluated() {
    const AveragedWeights averaged(optimizer_);
    const NoGrad no_grad;
    const Interruptible interruptible(callbacks_.stop, group_.size() == 1);
    try {
      return task_.evaluate();
    } catch (const StoppedError&) {
      if (asked_to_stop()) return std::nullopt;
      throw;  // interrupted from elsewhere
    }
  }

  // Returns whether this epoch is the best so far.
  bool update_best(const Evaluation& evaluation) {
    for (const auto& [name, value] : evaluation.figures)
      if (name == metric_) return state_.take_metric(name, value);
    std::string names;
    for (const auto& [name, value] : evaluation.figures) names += (names.empty() ? "" : ", ") + name;
    fail<UsageError>(task_.name, ": found the metric '", metric_, "' to select the best epoch, expected one of ", names);
  }

  void next_epoch() {
    ++state_.epoch;
    state_.batch = 0;
    state_.loss = {};
    state_.metrics.clear();
    state_.over = is_over();
    save();
  }

  const Task& task_;
  const TrainOptions& options_;
  RunFolder& run_;
  const TrainCallbacks& callbacks_;
  Group& group_ = world();
  OptimizerStep optimizer_;
  TrainState state_, before_step_;
  StepRunner steps_;
  Checkpoints checkpoints_;
  std::string metric_;
  int64_t all_steps_ = 0, steps_here_ = 0;  // steps_here_: in this process
  double rate_ = 0, norm_ = 0;
  Peak peak_;
  Clock::time_point started_ = Clock::now();
  Throughput window_;  // over the last seconds
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

TrainResult train_model(const Task& task, const TrainOptions& options, RunFolder& run, const TrainCallbacks& callbacks) {
  return Trainer(task, options, run, callbacks).run();
}

}  // namespace heed
