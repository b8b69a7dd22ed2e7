#include "heed/train/train_options.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>

namespace heed {
namespace {

// Below 1, a fraction of all steps.
double steps_of(double setting, int64_t all_steps) {
  return setting < 1 ? std::round(setting * static_cast<double>(all_steps)) : std::floor(setting);
}

}  // namespace

void declare(Settings& settings, TrainOptions& options) {
  const Allowed natural{.least = 0}, positive{.least = 1}, share{.least = 0, .most = 1}, below_one{.least = 0, .most = 0.999999};
  settings.heading("Training");
  settings.add("epochs", options.epochs, "passes over the training data", positive);
  settings.add("steps", options.steps, "stop after this many steps; 0: after all epochs", natural);
  settings.add("batch", options.batch, "batch size", positive);
  settings.add("accumulate", options.accumulate, "batches per optimizer step (gradient accumulation)", positive);
  settings.add("optimizer", options.optimizer, "optimizer", {.choices = {"sgd", "adam", "adamw"}});
  settings.add("rate", options.rate, "peak learning rate", natural);
  settings.add("momentum", options.momentum, "momentum of sgd", below_one);
  settings.add("beta1", options.beta1, "decay of adam's first moment", below_one);
  settings.add("beta2", options.beta2, "decay of adam's second moment", below_one);
  settings.add("weight_decay", options.weight_decay, "weight decay of matrices; norms, biases and positions have none", natural);
  settings.add("schedule", options.schedule, "learning rate schedule",
               {.choices = {"cosine", "inverse_sqrt", "step", "constant", "linear"}});
  settings.add("warmup", options.warmup, "warm-up steps; below 1: fraction of all steps", natural);
  settings.add("final_rate", options.final_rate, "learning rate at the end, as a fraction of rate", share);
  settings.add("step_every", options.step_every, "for schedule=step: steps between drops; below 1: fraction of all steps", {.least = 1e-6});
  settings.add("step_factor", options.step_factor, "for schedule=step: factor of each drop", share);
  settings.add("clip", options.clip, "maximum gradient norm; 0: no clipping", natural);
  settings.add("label_smoothing", options.label_smoothing, "label smoothing: target probability spread over all classes", below_one);
  settings.add("precision", options.precision,
               "precision of activations and matrix products; weights, sums and optimizer stay f32. auto: bf16 on GPUs, f32 on CPUs",
               {.choices = {"auto", "f32", "bf16"}});
  settings.add("average", options.average, "decay of the moving average of weights (EMA); 0: none", below_one);
  settings.heading("Evaluation, checkpoints and stopping");
  settings.add("patience", options.patience, "stop after this many epochs without improvement; 0: never", natural);
  settings.add("best", options.best, "metric that selects the best epoch; empty: the task's default");
  settings.add("validation", options.validation, "fraction of the training data held out if there is no validation part", below_one);
  settings.add("on_nan", options.on_nan, "what to do if the loss is not finite", {.choices = {"stop", "skip"}});
  settings.add("seed", options.seed, "random seed");
  settings.add("log_every", options.log_every, "steps between logged metrics", positive);
  settings.add("save_every", options.save_every, "steps between checkpoints; 0: every epoch", natural);
  settings.add("loaders", options.loaders, "data loading threads; 0: load in the training thread", {.least = 0, .most = 64});
  settings.add("device", options.device, "device to run on: cpu, cuda, cuda:1; auto: the first GPU if there is one");
  settings.add("graph", options.graph, "run steps as CUDA graphs; auto: if every step launches the same kernels",
               {.choices = {"auto", "off"}});
  settings.add("shards", options.shards,
               "parts of a batch whose gradients are computed separately and summed in a fixed order: results are the same for any "
               "number of processes up to this. auto: 1 for one process, else 8 or the next power of two; 0: one per process, "
               "summed in any order");
  settings.add("shard_optimizer", options.shard_optimizer,
               "every process keeps the optimizer state of its share of the parameters only: less memory, the same results");
}

void check_precision(const TrainOptions& options, bool machine_has_bf16) {
  check<UsageError>(options.precision != "bf16" || machine_has_bf16,
                    "train: precision=bf16, but this CPU has no bf16 instructions (AVX-512 BF16 or AMX), expected precision=f32: ",
                    "bf16 would be slower here");
}

double rate_at(const TrainOptions& options, int64_t step, int64_t all_steps) {
  check(0 <= step && step < all_steps, "rate: step ", step, " of ", all_steps, ", expected a smaller step");
  const double rate = options.rate, end = options.final_rate, done = static_cast<double>(step), all = static_cast<double>(all_steps);
  const double warm = steps_of(options.warmup, all_steps);
  if (done < warm) return rate * (done + 1) / warm;
  const double over = (done - warm) / std::max(all - warm, 1.0);
  if (options.schedule == "constant") return rate;
  if (options.schedule == "linear") return rate * (1 - (1 - end) * over);
  if (options.schedule == "cosine") return rate * (end + (1 - end) * (1 + std::cos(std::numbers::pi * over)) / 2);
  if (options.schedule == "inverse_sqrt") return rate * std::max(std::sqrt(std::max(warm, 1.0) / (done + 1)), end);
  check(options.schedule == "step", "rate: found the schedule '", options.schedule,
        "', expected cosine, inverse_sqrt, step, constant or linear");
  const double falls = std::floor(done / std::max(steps_of(options.step_every, all_steps), 1.0));
  return rate * std::max(std::pow(static_cast<double>(options.step_factor), falls), end);
}

std::string schedule_change(const TrainOptions& options, int64_t step, int64_t steps_before, int64_t steps_now) {
  if (steps_before == steps_now || step == 0) return "";
  std::ostringstream text;
  text << "the run now has " << steps_now << " steps instead of " << steps_before << ": schedule=" << options.schedule
       << " now covers all of them. The last step had a rate of " << rate_at(options, std::min(step, steps_before) - 1, steps_before);
  if (step < steps_now) text << ", the next one has " << rate_at(options, step, steps_now);
  return text.str();
}

}  // namespace heed
