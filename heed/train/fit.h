// Learning: the loop that every task goes through. It may end at any moment and goes on with the same numbers, bit for bit.
#pragma once

#include "heed/train/learning.h"
#include "heed/train/task.h"

namespace heed {

struct StepDone {
  int64_t epoch = 0, epochs = 0;  // from 1
  int64_t step = 0, steps = 0;    // of this epoch, from 1
  int64_t all_step = 0, all_steps = 0;
  Figures means = {};  // over the epoch so far: loss, and what the task counts
  double rate = 0, gradient_norm = 0;
  double samples_per_second = 0, share_of_peak = 0;  // of the machine's multiply-adds
  double seconds_left = 0;
};

struct EpochDone {
  int64_t epoch = 0, epochs = 0, step = 0;
  Figures figures = {};  // train_loss, ..., validation_loss, ..., rate
  bool best = false;     // so far
  double seconds = 0, samples_per_second = 0, share_of_peak = 0;
};

// Who looks on. Any of them may be empty.
struct Watch {
  std::function<void(const StepDone& step)> step = {};
  std::function<void(const EpochDone& epoch)> epoch = {};
  std::function<void(const std::string& text)> say = {};  // what people should know
  std::function<bool()> stop = {};                        // asked after every step: whether to save and end
};

enum class Ending { complete, patience, stopped };

struct FitResult {
  Ending ending = Ending::complete;
  int64_t epochs = 0, steps = 0, skipped = 0;  // skipped: steps whose loss or gradient was not finite
  int64_t best_epoch = 0;
  double best = 0;
};

// Leaves in the run's folder: metrics, checkpoints, last/ and best/. Goes on from the newest checkpoint where there is one. A loss or
// gradient that is not finite is a DivergedError, with the state before it kept, unless options say to skip the step.
FitResult fit(const Task& task, const LearnOptions& options, RunFolder& run, const Watch& watch = {});

// A complete model folder, there at once or not at all.
void save_model_folder(const Task& task, const Path& folder);

}  // namespace heed
