#include "heed/train/learning.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>

namespace heed {
namespace {

// Steps that were said as a share of all where below 1.
double steps_of(double said, int64_t all_steps) { return said < 1 ? std::round(said * static_cast<double>(all_steps)) : std::floor(said); }

}  // namespace

void declare(Settings& settings, LearnOptions& options) {
  const Allowed natural{.least = 0}, positive{.least = 1}, share{.least = 0, .most = 1}, below_one{.least = 0, .most = 0.999999};
  settings.heading("Learning");
  settings.add("epochs", options.epochs, "passes over the training data", positive);
  settings.add("steps", options.steps, "stop after so many steps; 0: when the epochs are over", natural);
  settings.add("batch", options.batch, "samples of a step", positive);
  settings.add("accumulate", options.accumulate, "batches that one step takes its gradient from", positive);
  settings.add("optimizer", options.optimizer, "who takes the steps", {.words = {"sgd", "adam", "adamw"}});
  settings.add("rate", options.rate, "the largest learning rate", natural);
  settings.add("momentum", options.momentum, "of sgd", below_one);
  settings.add("beta1", options.beta1, "of adam: memory of gradients", below_one);
  settings.add("beta2", options.beta2, "of adam: memory of their squares", below_one);
  settings.add("weight_decay", options.weight_decay, "of matrices; norms, biases and positions take none", natural);
  settings.add("schedule", options.schedule, "how the rate falls", {.words = {"cosine", "inverse_sqrt", "step", "constant", "linear"}});
  settings.add("warmup", options.warmup, "the rate rises for so many steps; below 1: for this share of all", natural);
  settings.add("final_rate", options.final_rate, "at the end, as a share of rate", share);
  settings.add("step_every", options.step_every, "of schedule=step: steps between falls; below 1: a share of all", {.least = 1e-6});
  settings.add("step_factor", options.step_factor, "of schedule=step: what the rate is multiplied by", share);
  settings.add("clip", options.clip, "the largest norm of all gradients together; 0: any", natural);
  settings.add("label_smoothing", options.label_smoothing, "share of the truth that is spread over all classes", below_one);
  settings.add("precision", options.precision, "of products in linear layers while it learns; weights and sums stay f32",
               {.words = {"f32", "bf16"}});
  settings.add("average", options.average, "decay of the moving average of weights; 0: none", below_one);
  settings.heading("When to look, keep and stop");
  settings.add("patience", options.patience, "stop after so many epochs without a better one; 0: never", natural);
  settings.add("best", options.best, "the metric by which the best epoch is known; empty: the task's");
  settings.add("validation", options.validation, "share of the training data kept out where there is no validation part", below_one);
  settings.add("on_nan", options.on_nan, "what to do when the loss is not a number", {.words = {"stop", "skip"}});
  settings.add("seed", options.seed, "of everything by chance");
  settings.add("log_every", options.log_every, "steps between lines of metrics", positive);
  settings.add("save_every", options.save_every, "steps between checkpoints; 0: every epoch", natural);
  settings.add("loaders", options.loaders, "threads that make batches; 0: none beside the one that learns", {.least = 0, .most = 64});
  settings.add("device", options.device, "where it runs: this build has the CPU alone",
               {.words = {"auto", "cpu"}, .why = ": this build runs on the CPU"});
}

void check_precision(const LearnOptions& options, bool machine_has_bf16) {
  check<UsageError>(options.precision != "bf16" || machine_has_bf16,
                    "train: precision=bf16, but this machine has no instructions for it (AVX-512 BF16 or AMX), expected precision=f32: ",
                    "bf16 would be slower here");
}

double rate_at(const LearnOptions& options, int64_t step, int64_t all_steps) {
  check(0 <= step && step < all_steps, "rate: step ", step, " of ", all_steps, ", expected one below that");
  const double rate = options.rate, end = options.final_rate, done = static_cast<double>(step), all = static_cast<double>(all_steps);
  const double warm = steps_of(options.warmup, all_steps);
  if (done < warm) return rate * (done + 1) / warm;
  const double over = (done - warm) / std::max(all - warm, 1.0);
  if (options.schedule == "constant") return rate;
  if (options.schedule == "linear") return rate * (1 - (1 - end) * over);
  if (options.schedule == "cosine") return rate * (end + (1 - end) * (1 + std::cos(std::numbers::pi * over)) / 2);
  if (options.schedule == "inverse_sqrt") return rate * std::max(std::sqrt(std::max(warm, 1.0) / (done + 1)), end);
  check(options.schedule == "step", "rate: the schedule '", options.schedule, "', expected cosine, inverse_sqrt, step, constant or linear");
  const double falls = std::floor(done / std::max(steps_of(options.step_every, all_steps), 1.0));
  return rate * std::max(std::pow(static_cast<double>(options.step_factor), falls), end);
}

std::string schedule_change(const LearnOptions& options, int64_t step, int64_t steps_before, int64_t steps_now) {
  if (steps_before == steps_now || step == 0) return "";
  std::ostringstream text;
  text << "the run has " << steps_now << " steps now, before it had " << steps_before << ": schedule=" << options.schedule
       << " is stretched over all of them. The last step had a rate of "
       << rate_at(options, std::min(step, steps_before) - 1, steps_before);
  if (step < steps_now) text << ", the next one has " << rate_at(options, step, steps_now);
  return text.str();
}

}  // namespace heed
