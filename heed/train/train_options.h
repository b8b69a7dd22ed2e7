// Training options common to all tasks: optimizer, learning rate schedule, stopping.
#pragma once

#include "heed/core/api.h"
#include "heed/core/dtype.h"
#include "heed/train/settings.h"

namespace HEED_API heed {

// Settings of heed train that all tasks have; docs/training.md describes each.
struct TrainOptions {
  int64_t epochs = 10, steps = 0;      // steps: stop after this many, 0: after all epochs
  int64_t batch = 64, accumulate = 1;  // batch size; batches per optimizer step
  std::string optimizer = "adamw";
  float rate = 1e-3f, momentum = 0.9f, beta1 = 0.9f, beta2 = 0.999f, weight_decay = 0.05f;
  std::string schedule = "cosine";
  float warmup = 0.05f;      // below 1: fraction of all steps; else steps
  float final_rate = 0;      // at the end, as a fraction of rate
  float step_every = 0.3f;   // for schedule=step, in the unit of warmup
  float step_factor = 0.1f;  // for schedule=step
  float clip = 1;            // maximum gradient norm; 0: no clipping
  float label_smoothing = 0;
  std::string precision = "auto";  // of activations and their gradients in training: f32 or bf16; weights and optimizer are f32
  float average = 0;               // decay of the weight average used for evaluation and saving; 0: none
  int64_t patience = 0;            // stop after this many epochs without improvement; 0: never
  std::string best = "";           // metric that selects the best epoch; empty: the task's
  float validation = 0.1f;         // fraction of the training data held out if there is no validation part
  std::string on_nan = "stop";
  uint64_t seed = 1;
  int64_t log_every = 10, save_every = 0;  // in steps; save_every 0: every epoch
  int64_t loaders = 1;                     // data loading threads
  std::string device = "auto", graph = "auto";
  std::string shards = "auto";  // parts of a batch whose gradients are computed separately, see shards.h
  bool shard_optimizer = false;
};
// Adds them to the settings of a command.
void declare(Settings& settings, TrainOptions& options);
// The precision of activations in training; "auto" must have been replaced.
inline DType precision_of(const TrainOptions& options) { return options.precision == "bf16" ? DType::bf16 : DType::f32; }
// UsageError if bf16 is not supported by the hardware, where it would only be slower.
void check_precision(const TrainOptions& options, bool machine_has_bf16);

// The learning rate of a step, counted from 0. With r = rate, f = final_rate, w = warm-up steps, s = step + 1 and
// t = (step - w) / (all - w), the fraction of the remaining steps:
//   warm-up, s <= w   r s / w
//   constant          r
//   linear            r (1 - (1 - f) t)
//   cosine            r (f + (1 - f) (1 + cos(pi t)) / 2)        Loshchilov and Hutter 2017
//   inverse_sqrt      r sqrt(w / s), not below r f; w at least 1   Vaswani et al. 2017 with r = 1 / sqrt(d w)
//   step              r step_factor^k after k times step_every steps, not below r f
double rate_at(const TrainOptions& options, int64_t step, int64_t all_steps);

// Message for a run resumed after `step` steps with a different total: it continues on the schedule of the new total. Empty if nothing
// changed.
std::string schedule_change(const TrainOptions& options, int64_t step, int64_t steps_before, int64_t steps_now);

}  // namespace heed
