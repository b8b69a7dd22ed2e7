#include "heed/train/trainer.h"

#include <cmath>
#include <limits>

#include "heed/core/interrupt.h"
#include "heed/train/batch_order.h"
#include "heed/train/diverged.h"
#include "heed/train/head_record.h"
#include "heed/train/loader.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/scores.h"
#include "heed/train/step_runner.h"
#include "heed/train/throughput.h"
#include "heed/train/train_events.h"
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
        steps_(task, optimizer_, options, state_.rng),
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
    run_.log(text);
    if (callbacks_.say) callbacks_.say(text);
  }
  int64_t steps_in(size_t batches) const { return (static_cast<int64_t>(batches) + options_.accumulate - 1) / options_.accumulate; }

  void begin() {
    const size_t batches = task_.batches(0).size();
    check(batches > 0, task_.name, ": found no training data");
    all_steps_ = options_.epochs * steps_in(batches);
    if (options_.steps > 0) all_steps_ = std::min(all_steps_, options_.steps);
    if (const std::optional<Checkpoint> found = checkpoints_.newest([&](const std::string& text) { say(text); })) {
      state_ = train_state_from(found->state.at("fit"));
      optimizer_.load(found->tensors, found->state.at("optimizer_steps").get<int64_t>(), (run_.path() / "checkpoints").string());
      run_.rewind(found->state.at("files"));
      if (state_.over) state_.over = is_over();  // epochs or steps may have been increased
      if (state_.step > 0) say("resumes from step " + std::to_string(state_.step) + " of " + std::to_string(all_steps_));
      const std::string change = schedule_change(options_, state_.step, found->state.value("all_steps", all_steps_), all_steps_);
      if (!change.empty()) say(change);
    } else {
      const Json mark = run_.mark();
      if (mark.at("metrics.jsonl").get<int64_t>() + mark.value("heads.jsonl", int64_t{0}) > 0) {
        say("found no usable checkpoint: training starts from scratch");
        run_.rewind({}, 0);
      }
      record_heads(run_, *task_.model, 0, 0);
      save();
    }
    peak_.measure();
    window_ = {};
    started_ = window_.start;
  }

  void save() {
    checkpoints_.write(
        state_.step,
        {optimizer_.tensors(),
         {{"fit", to_json(state_)}, {"optimizer_steps", optimizer_.steps()}, {"files", run_.mark()}, {"all_steps", all_steps_}}});
    saved_ = Clock::now();
  }
  bool asked_to_stop() const { return callbacks_.stop && callbacks_.stop(); }
  // Returns false if a stop was requested.
  bool epoch() {
    const Batches batches = task_.batches(state_.epoch);
    Loader loader(
        batches, static_cast<size_t>(std::min(state_.batch, std::ssize(batches))),
        [&, now = state_.epoch](const std::vector<int64_t>& samples) { return task_.batch(now, samples); }, options_.loaders);
    const Clock::time_point start = Clock::now();
    Throughput throughput;
    while (state_.batch < std::ssize(batches) && !reached_last_step()) {
      step(loader, batches, throughput);
      if (asked_to_stop()) {
        save();
        return false;
      }
      const bool due = options_.save_every > 0 && state_.step % options_.save_every == 0;
      if (due || seconds_since(saved_) > kSaveSeconds) save();
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

  void step(Loader& loader, const Batches& batches, Throughput& throughput) {
    before_step_ = state_;
    rate_ = rate_at(options_, state_.step, all_steps_);
    norm_ = std::numeric_limits<float>::quiet_NaN();
    const auto first = batches.begin() + state_.batch, last = first + std::min(options_.accumulate, std::ssize(batches) - state_.batch);
    double samples = 0;
    for (auto part = first; part != last; ++part) samples += static_cast<double>(part->size());
    bool good = true;
    for (auto part = first; part != last; ++part, ++state_.batch) {
      const Batch batch = loader.next();
      if (good) good = train_batch(batch, static_cast<float>(static_cast<double>(part->size()) / samples), part + 1 == last, throughput);
    }
    if (!good) {
      state_.loss = before_step_.loss;
      state_.metrics = before_step_.metrics;
      ++state_.skipped;
    }
    ++state_.step;
    ++steps_here_;
    report_step((state_.batch + options_.accumulate - 1) / options_.accumulate, steps_in(batches.size()));
  }

  // share: fraction of the step's samples; last_batch: the gradient is complete. Returns false, without an update, if something was not
  // finite.
  bool train_batch(const Batch& batch, float share, bool last_batch, Throughput& throughput) {
    const Rng before = state_.rng;
    const StepFigures figures = steps_.run(batch, static_cast<float>(rate_), share, last_batch);
    norm_ = figures.norm;
    if (!std::isfinite(figures.loss)) return diverge("loss", figures.loss, batch, before);
    if (last_batch && !std::isfinite(norm_)) return diverge("gradient norm", norm_, batch, before);
    state_.loss.add({figures.loss * static_cast<double>(batch.samples), static_cast<double>(batch.samples)});
    for (const auto& [name, mean] : figures.metrics) state_.metrics[name].add(mean);
    for (Throughput* each : {&throughput, &window_}) each->add(static_cast<double>(batch.samples), figures.multiply_adds);
    return true;
  }

  // Returns false if the step is skipped, else throws.
  bool diverge(const char* what, double value, const Batch& batch, const Rng& before) {
    std::ostringstream text;
    text << task_.name << ": the " << what << " is " << value << " in epoch " << state_.epoch + 1 << ", step " << state_.step + 1 << ": "
         << first_not_finite(*task_.model, batch, before);
    if (options_.on_nan == "skip") {
      say(text.str() + ". The step is skipped");
      return false;
    }
    const bool usable = all_finite(optimizer_.parameters());
    if (usable) state_ = before_step_, save();
    text << (usable ? ". The state before this step is saved in " : ". The last good state is in ")
         << (run_.path() / "checkpoints").string();
    run_.log(text.str());
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
    if (state_.step % options_.log_every == 0) {
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
    write_histograms(run_.events(), optimizer_.parameters(), state_.step);
    evaluate_and_save(*evaluation, done);
    done.seconds = seconds_since(start);
    run_.add_epoch(done.epoch, state_.step, done.figures);
    run_.add_speed(done.epoch, state_.step,
                   {{"seconds", done.seconds}, {"samples_per_second", done.samples_per_second}, {"share_of_peak", done.share_of_peak}});
    run_.log("epoch " + std::to_string(done.epoch) + ": " + figures_text(done.figures) + (done.best ? "; best" : ""));
    next_epoch();
    if (callbacks_.epoch) callbacks_.epoch(done);
    return true;
  }

  // On the validation part, with the averaged weights if there are any: they are what is saved.
  std::optional<Evaluation> evaluated() {
    const AveragedWeights averaged(optimizer_);
    const NoGrad no_grad;
    const Interruptible interruptible(callbacks_.stop);
    try {
      return task_.evaluate();
    } catch (const StoppedError&) {
      if (asked_to_stop()) return std::nullopt;
      throw;  // interrupted from elsewhere
    }
  }

  void evaluate_and_save(const Evaluation& evaluation, EpochInfo& done) {
    const AveragedWeights averaged(optimizer_);
    const NoGrad no_grad;
    for (const auto& [name, value] : evaluation.figures) done.figures.emplace_back("validation_" + name, value);
    done.figures.emplace_back("rate", rate_at(options_, std::max<int64_t>(state_.step - 1, 0), all_steps_));
    done.best = update_best(evaluation);
    if (state_.epoch == 0) write_first_samples(run_.events(), task_, state_.step);
    write_attention(run_.events(), task_, state_.step);
    record_heads(run_, *task_.model, state_.epoch + 1, state_.step);
    save_model_folder(task_, run_.path() / "last");
    if (done.best) save_model_folder(task_, run_.path() / "best");
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
