// How a model learns: optimizer, rate and its schedule, and when to stop. The same for every task.
#pragma once

#include "heed/train/settings.h"

namespace heed {

struct LearnOptions {
  int64_t epochs = 10, steps = 0;      // passes over the data; steps: stop after so many, 0: when the epochs are over
  int64_t batch = 64, accumulate = 1;  // samples at once; batches that one step takes its gradient from
  std::string optimizer = "adamw";
  float rate = 1e-3f, momentum = 0.9f, beta1 = 0.9f, beta2 = 0.999f, weight_decay = 0.05f;
  std::string schedule = "cosine";
  float warmup = 0.05f;      // below 1: a share of all steps; else steps
  float final_rate = 0;      // at the end, as a share of rate
  float step_every = 0.3f;   // of schedule step, counted as warmup
  float step_factor = 0.1f;  // of schedule step
  float clip = 1;            // the largest norm of the gradient; 0: any
  float label_smoothing = 0;
  std::string precision = "f32";  // of the products in linear layers while it learns; bf16: their operands are rounded to it
  float average = 0;              // decay of the moving average of weights that is evaluated and kept; 0: none
  int64_t patience = 0;           // stop after so many epochs without a better one; 0: never
  std::string best = "";          // the metric by which the best epoch is known; empty: the task's
  float validation = 0.1f;        // share of the training data that is kept out where there is no validation part
  std::string on_nan = "stop";
  uint64_t seed = 1;
  int64_t log_every = 10, save_every = 0;  // steps; save_every 0: every epoch
  int64_t loaders = 1;                     // threads that make batches
  std::string device = "auto";
};
void declare(Settings& settings, LearnOptions& options);
// A UsageError where the machine would only lose by it.
void check_precision(const LearnOptions& options, bool machine_has_bf16);

// The rate of a step, counted from 0, of all. With r = rate, f = final_rate, w the steps of warm-up, s = step + 1 and
// t = (step - w) / (all - w), the share of the rest that is over:
//   warm-up, s <= w   r s / w
//   constant          r
//   linear            r (1 - (1 - f) t)
//   cosine            r (f + (1 - f) (1 + cos(pi t)) / 2)        Loshchilov and Hutter 2017
//   inverse_sqrt      r sqrt(w / s), not below r f; w at least 1   Vaswani et al. 2017 with r = 1 / sqrt(d w)
//   step              r step_factor^k after k times step_every steps, not below r f
double rate_at(const LearnOptions& options, int64_t step, int64_t all_steps);

// For people, of a run that goes on after `step` steps with another number of them in all: from there on its rates are those of a run that
// was so long from the beginning. Empty where nothing changed.
std::string schedule_change(const LearnOptions& options, int64_t step, int64_t steps_before, int64_t steps_now);

}  // namespace heed
