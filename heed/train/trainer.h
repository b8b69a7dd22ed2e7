// The training loop of all tasks. A run may be interrupted at any point and resumes bit for bit.
#pragma once

#include "heed/core/api.h"
#include "heed/train/task.h"
#include "heed/train/train_options.h"

namespace HEED_API heed {

// Progress, metrics and speed after a step.
struct StepInfo {
  int64_t epoch = 0, epochs = 0;  // epoch counts from 1
  int64_t step = 0, steps = 0;    // in this epoch, from 1
  int64_t all_step = 0, all_steps = 0;
  Metrics means = {};  // over the epoch so far: loss and the task's metrics
  double rate = 0, gradient_norm = 0;
  double samples_per_second = 0, share_of_peak = 0;  // share_of_peak: of the machine's peak FLOP/s
  double seconds_left = 0;
};

// Metrics and speed of a finished epoch.
struct EpochInfo {
  int64_t epoch = 0, epochs = 0, step = 0;
  Metrics figures = {};  // train_loss, ..., validation_loss, ..., rate
  bool best = false;     // so far
  double seconds = 0, samples_per_second = 0, share_of_peak = 0;
};

// Any of them may be empty.
struct TrainCallbacks {
  std::function<void(const StepInfo& step)> step = {};
  std::function<void(const EpochInfo& epoch)> epoch = {};
  std::function<void(const std::string& text)> say = {};  // messages for the user
  std::function<bool()> stop = {};                        // polled after every step; true: save and stop
};

// Why training ended: all epochs done, no improvement for too long, or stopped by the user.
enum class StopReason { complete, patience, stopped };

// How training ended, and the best value of the metric with its epoch.
struct TrainResult {
  StopReason ending = StopReason::complete;
  int64_t epochs = 0, steps = 0, skipped = 0;  // skipped: steps with a non-finite loss or gradient
  int64_t best_epoch = 0;
  double best = 0;
};

// Writes metrics, checkpoints, last/ and best/ to the run folder. Resumes from the newest checkpoint if there is one. A non-finite loss or
// gradient is a DivergedError, with the previous state saved, unless the options say to skip the step.
TrainResult train_model(const Task& task, const TrainOptions& options, RunFolder& run, const TrainCallbacks& callbacks = {});

// Writes a complete model folder atomically.
void save_model_folder(const Task& task, const Path& folder);

}  // namespace heed
