// Forward, backward and update of batches. On GPUs, steps that always launch the same kernels are recorded as a CUDA graph: they start as
// one, and one copy brings their figures to the host.
#pragma once

#include <optional>

#include "heed/core/captured_step.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/task.h"

namespace heed {

struct StepFigures {
  float loss = 0, norm = 0;
  RunningMeans metrics = {};
  double multiply_adds = 0;  // forward and backward
};

class StepRunner {
 public:
  StepRunner(const Task& task, OptimizerStep& optimizer, const TrainOptions& options, Rng& rng);

  // share: fraction of the step's samples; last_batch: the gradient is complete, and the update follows. Without update if the loss is not
  // finite.
  StepFigures run(const Batch& batch, float rate, float share, bool last_batch);

 private:
  // None if this batch must be run kernel by kernel: on the CPU, with graph=off, for other shapes or other work.
  std::optional<StepFigures> run_captured(const Batch& batch, float rate);
  Tensors captured_work();

  const Task& task_;
  OptimizerStep& optimizer_;
  const TrainOptions& options_;
  Rng& rng_;
  bool enabled_;
  bool fresh_ = true;  // no gradient of this step has been added yet
  Batch batch_ = {};   // its inputs are on the device and overwritten by every batch
  std::optional<CapturedStep> step_ = {};
  std::vector<std::pair<std::string, double>> metrics_ = {};  // names and counts
  double multiply_adds_ = 0;
};

}  // namespace heed
