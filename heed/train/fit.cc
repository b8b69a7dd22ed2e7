#include "heed/train/fit.h"

#include <cmath>
#include <limits>

#include "heed/core/interrupt.h"
#include "heed/ops/bf16_product.h"
#include "heed/train/diverged.h"
#include "heed/train/fit_events.h"
#include "heed/train/fit_state.h"
#include "heed/train/head_record.h"
#include "heed/train/learner.h"
#include "heed/train/loader.h"
#include "heed/train/order.h"
#include "heed/train/pace.h"
#include "heed/train/scores.h"

namespace heed {
namespace {

// A run that is killed loses at most what it did in so many seconds.
constexpr double kSaveSeconds = 120;

class Fitting {
 public:
  Fitting(const Task& task, const LearnOptions& options, RunFolder& run, const Watch& watch)
      : task_(task), options_(options), run_(run), watch_(watch), learner_(*task.model, options), checkpoints_(run.path() / "checkpoints") {
    metric_ = options.best.empty() ? task.metric : options.best;
    state_.rng = Rng(options.seed);
  }

  FitResult run() {
    begin();
    bool stopped = false;
    while (!state_.over && !stopped) stopped = !epoch();
    return {.ending = stopped             ? Ending::stopped
                      : out_of_patience() ? Ending::patience
                                          : Ending::complete,
            .epochs = state_.epoch,
            .steps = state_.step,
            .skipped = state_.skipped,
            .best_epoch = state_.best_epoch,
            .best = state_.best};
  }

 private:
  void say(const std::string& text) {
    run_.log(text);
    if (watch_.say) watch_.say(text);
  }

  int64_t steps_in(size_t batches) const { return (static_cast<int64_t>(batches) + options_.accumulate - 1) / options_.accumulate; }

  void begin() {
    const size_t batches = task_.batches(0).size();
    check(batches > 0, task_.name, ": there is nothing to learn from");
    all_steps_ = options_.epochs * steps_in(batches);
    if (options_.steps > 0) all_steps_ = std::min(all_steps_, options_.steps);
    if (const std::optional<Checkpoint> found = checkpoints_.newest([&](const std::string& text) { say(text); })) {
      state_ = fit_state_from(found->state.at("fit"));
      learner_.fill(found->tensors, found->state.at("optimizer_steps").get<int64_t>(), (run_.path() / "checkpoints").string());
      run_.rewind(found->state.at("files"));
      if (state_.over) state_.over = is_over();  // it may have been told to go on for longer
      if (state_.step > 0) say("goes on from step " + std::to_string(state_.step) + " of " + std::to_string(all_steps_));
      const std::string change = schedule_change(options_, state_.step, found->state.value("all_steps", all_steps_), all_steps_);
      if (!change.empty()) say(change);
    } else {
      const Json mark = run_.mark();
      if (mark.at("metrics.jsonl").get<int64_t>() + mark.value("heads.jsonl", int64_t{0}) > 0) {
        say("no checkpoint can be used: learning begins anew");
        run_.rewind({}, 0);
      }
      record_heads(run_, *task_.model, 0, 0);
      save();
    }
    peak_.measure();
    window_ = {};
    begun_ = window_.start;
  }

  void save() {
    checkpoints_.write(
        state_.step,
        {learner_.tensors(),
         {{"fit", to_json(state_)}, {"optimizer_steps", learner_.steps()}, {"files", run_.mark()}, {"all_steps", all_steps_}}});
    saved_ = Clock::now();
  }

  bool asked_to_stop() const { return watch_.stop && watch_.stop(); }

  // False: somebody asked to stop.
  bool epoch() {
    const Batches batches = task_.batches(state_.epoch);
    Loader loader(
        batches, static_cast<size_t>(std::min(state_.batch, std::ssize(batches))),
        [&, now = state_.epoch](const std::vector<int64_t>& samples) { return task_.batch(now, samples); }, options_.loaders);
    const Clock::time_point start = Clock::now();
    Pace pace;
    while (state_.batch < std::ssize(batches) && !reached_the_end()) {
      step(loader, batches, pace);
      if (asked_to_stop()) {
        save();
        return false;
      }
      const bool often = options_.save_every > 0 && state_.step % options_.save_every == 0;
      if (often || seconds_since(saved_) > kSaveSeconds) save();
    }
    if (!end_epoch(start, pace)) {
      save();
      return false;
    }
    return state_.over || !asked_to_stop();
  }

  bool is_over() const { return state_.epoch >= options_.epochs || reached_the_end() || out_of_patience(); }
  bool out_of_patience() const { return options_.patience > 0 && state_.epochs_since_best >= options_.patience; }
  bool reached_the_end() const { return options_.steps > 0 && state_.step >= options_.steps; }

  void step(Loader& loader, const Batches& batches, Pace& pace) {
    before_step_ = state_;
    learner_.zero_grad();
    rate_ = rate_at(options_, state_.step, all_steps_);
    norm_ = std::numeric_limits<float>::quiet_NaN();
    const auto first = batches.begin() + state_.batch, last = first + std::min(options_.accumulate, std::ssize(batches) - state_.batch);
    double samples = 0;
    for (auto part = first; part != last; ++part) samples += static_cast<double>(part->size());
    bool good = true;
    for (auto part = first; part != last; ++part, ++state_.batch) {
      const Batch batch = loader.next();
      if (good) good = learn_from(batch, static_cast<float>(static_cast<double>(part->size()) / samples), part + 1 == last, pace);
    }
    if (!good) {
      state_.loss = before_step_.loss;
      state_.shares = before_step_.shares;
      ++state_.skipped;
    }
    ++state_.step;
    ++steps_here_;
    tell_step((state_.batch + options_.accumulate - 1) / options_.accumulate, steps_in(batches.size()));
  }

  // share: of the step's samples; moves: the gradient is complete. False: something was not finite, and nothing moved.
  bool learn_from(const Batch& batch, float share, bool moves, Pace& pace) {
    const Rng before = state_.rng;
    std::optional<Bf16Layers> narrow;
    if (options_.precision == "bf16") narrow.emplace();
    const Outcome outcome = task_.learn(batch, {.mode = training_with(state_.rng)});
    const float loss = outcome.loss.item();
    if (!std::isfinite(loss)) return diverge("loss", loss, batch, before);
    backward(share == 1 ? outcome.loss : scale(outcome.loss, share));
    if (moves) norm_ = learner_.step(static_cast<float>(rate_));
    if (moves && !std::isfinite(norm_)) return diverge("norm of the gradient", norm_, batch, before);
    state_.loss.add({loss * static_cast<double>(batch.samples), static_cast<double>(batch.samples)});
    for (const auto& [name, counted] : outcome.shares) state_.shares[name].add(counted);
    for (Pace* each : {&pace, &window_}) each->add(static_cast<double>(batch.samples), outcome.multiply_adds);
    return true;
  }

  // False where the step is skipped; else an error.
  bool diverge(const char* what, double value, const Batch& batch, const Rng& before) {
    std::ostringstream text;
    text << task_.name << ": the " << what << " is " << value << " in epoch " << state_.epoch + 1 << ", step " << state_.step + 1 << ": "
         << first_not_finite(*task_.model, batch, before);
    if (options_.on_nan == "skip") {
      say(text.str() + ". The step is skipped");
      return false;
    }
    if (all_finite(learner_.parameters())) {
      state_ = before_step_;
      save();
      text << ". The state before this step is kept in " << (run_.path() / "checkpoints").string();
    } else {
      text << ". The newest good state is in " << (run_.path() / "checkpoints").string();
    }
    run_.log(text.str());
    fail<DivergedError>(text.str(), "; try a lower rate or clip, or on_nan=skip");
  }

  Figures means() const {
    Figures out{{"loss", state_.loss.sum / state_.loss.of}};
    for (const auto& [name, share] : state_.shares) out.emplace_back(name, share.sum / share.of);
    return out;
  }

  void tell_step(int64_t step, int64_t steps) {
    const StepDone done{
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
        .seconds_left = seconds_since(begun_) / static_cast<double>(steps_here_) * static_cast<double>(all_steps_ - state_.step)};
    if (state_.step % options_.log_every == 0) {
      Figures row;
      for (const auto& [name, value] : done.means) row.emplace_back("train_" + name, value);
      row.emplace_back("rate", rate_);
      row.emplace_back("gradient_norm", norm_);
      run_.add_step(state_.epoch + 1, state_.step, row);
    }
    if (watch_.step) watch_.step(done);
    if (seconds_since(window_.start) > 5) {
      peak_.correct(window_);
      window_ = {};
    }
  }

  // False: somebody asked to stop during the evaluation. Nothing is written then; a run that goes on begins with it.
  bool end_epoch(Clock::time_point start, const Pace& pace) {
    EpochDone done{.epoch = state_.epoch + 1, .epochs = options_.epochs, .step = state_.step};
    for (const auto& [name, value] : means()) done.figures.emplace_back("train_" + name, value);
    done.samples_per_second = pace.samples_per_second();
    peak_.correct(pace);
    done.share_of_peak = peak_.share(pace);
    const std::optional<Evaluation> evaluation = evaluated();
    if (!evaluation) return false;
    write_histograms(run_.events(), learner_.parameters(), state_.step);
    judge_and_keep(*evaluation, done);
    done.seconds = seconds_since(start);
    run_.add_epoch(done.epoch, state_.step, done.figures);
    run_.add_speed(done.epoch, state_.step,
                   {{"seconds", done.seconds}, {"samples_per_second", done.samples_per_second}, {"share_of_peak", done.share_of_peak}});
    run_.log("epoch " + std::to_string(done.epoch) + ": " + figures_text(done.figures) + (done.best ? "; best" : ""));
    next_epoch();
    if (watch_.epoch) watch_.epoch(done);
    return true;
  }

  // On the validation part, with the averages, where there are any: they are what is kept.
  std::optional<Evaluation> evaluated() {
    const Averaged averaged(learner_);
    const NoGrad quiet;
    const Interruptible by_person(watch_.stop);
    try {
      return task_.evaluate();
    } catch (const StoppedError&) {
      if (asked_to_stop()) return std::nullopt;
      throw;  // somebody else is to know
    }
  }

  void judge_and_keep(const Evaluation& evaluation, EpochDone& done) {
    const Averaged averaged(learner_);
    const NoGrad quiet;
    for (const auto& [name, value] : evaluation.figures) done.figures.emplace_back("validation_" + name, value);
    done.figures.emplace_back("rate", rate_at(options_, std::max<int64_t>(state_.step - 1, 0), all_steps_));
    done.best = judge(evaluation);
    if (state_.epoch == 0) write_first_samples(run_.events(), task_, state_.step);
    write_attention(run_.events(), task_, state_.step);
    record_heads(run_, *task_.model, state_.epoch + 1, state_.step);
    save_model_folder(task_, run_.path() / "last");
    if (done.best) save_model_folder(task_, run_.path() / "best");
  }

  // Whether this epoch is the best so far.
  bool judge(const Evaluation& evaluation) {
    for (const auto& [name, value] : evaluation.figures)
      if (name == metric_) return state_.take_metric(name, value);
    std::string names;
    for (const auto& [name, value] : evaluation.figures) names += (names.empty() ? "" : ", ") + name;
    fail<UsageError>(task_.name, ": there is no metric '", metric_, "' to tell the best epoch by; there are ", names);
  }

  void next_epoch() {
    ++state_.epoch;
    state_.batch = 0;
    state_.loss = {};
    state_.shares.clear();
    state_.over = is_over();
    save();
  }

  const Task& task_;
  const LearnOptions& options_;
  RunFolder& run_;
  const Watch& watch_;
  Learner learner_;
  Checkpoints checkpoints_;
  FitState state_, before_step_;
  std::string metric_;
  int64_t all_steps_ = 0, steps_here_ = 0;  // steps_here_: of this process
  double rate_ = 0, norm_ = 0;
  Peak peak_;
  Clock::time_point begun_ = Clock::now();
  Pace window_;  // over the last seconds
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

FitResult fit(const Task& task, const LearnOptions& options, RunFolder& run, const Watch& watch) {
  return Fitting(task, options, run, watch).run();
}

}  // namespace heed
