// Steps of training: forward, backward and update. The batches of a step are cut into shards, whose gradients are summed, over several
// processes if there are any. On GPUs, steps that always launch the same kernels are captured as a CUDA graph: a step is one launch,
// and one copy of its figures to the host.
#pragma once

#include <optional>

#include "heed/core/captured_step.h"
#include "heed/ops/batch_shards.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/shard_sum.h"
#include "heed/train/task.h"

namespace heed {

struct PartFigures {  // of one batch, or of one shard of it
  int64_t samples = 0;
  float loss = 0;
  RunningMeans metrics = {};
  double multiply_adds = 0;  // forward and backward
};

struct StepProblem {
  std::string found = {}, where = {};  // "the loss is nan", "the parameter bias holds nan"
};

struct StepFigures {
  std::vector<PartFigures> parts = {};  // of all processes, in an order that does not depend on their number
  float norm = 0;                       // of the gradient
  std::optional<StepProblem> problem = {};
  bool stop = false, save = false;  // some process must stop; the first one is due to save
};

class StepRunner {
 public:
  StepRunner(const Task& task, OptimizerStep& optimizer, const TrainOptions& options, Rng& rng, Group& group);

  const Shards& shards() const { return shards_; }
  // batches: of the step; next: gives their shards in the order of Shards::own_batches. No update if there is a problem.
  StepFigures run(std::span<const std::vector<int64_t>> batches, const std::function<Batch()>& next, float rate, bool stop, bool save);

 private:
  // share: fraction of the step's samples. last: no other part of this process follows. shards: if they run in lockstep
  void run_part(const Batch& batch, Rng& rng, double share, bool last, StepFigures& figures, BatchShards* shards = nullptr);
  void run_shards(std::span<const std::vector<int64_t>> batches, const std::function<Batch()>& next, StepFigures& figures);
  void run_in_lockstep(std::span<const std::vector<int64_t>> batches, const std::function<Batch()>& next, StepFigures& figures);
  Rng rng_of(int64_t shard) const;
  std::vector<size_t> exchange(StepFigures& figures);  // -> parameters without a gradient
  // None if this batch must be run kernel by kernel: on the CPU, with graph=off, for other shapes or other work.
  std::optional<StepFigures> run_captured(const Batch& batch, float rate);
  Tensors captured_work();
  // Forward updates the running statistics of batch norm. A step that is not taken must leave them as they were.
  void remember_statistics();
  void restore_statistics();

  const Task& task_;
  OptimizerStep& optimizer_;
  const TrainOptions& options_;
  Rng& rng_;
  Group& group_;
  const Shards shards_;
  std::optional<ShardSum> sum_ = {};                  // if there are several shards
  Tensors statistics_ = {}, statistics_before_ = {};  // running ones of batch norm; those before the step
  bool enabled_;                                      // captured steps
  Batch batch_ = {};                                  // its inputs are on the device and overwritten by every batch
  std::optional<CapturedStep> step_ = {};
  std::vector<std::pair<std::string, double>> metrics_ = {};  // names and counts
  double multiply_adds_ = 0;
};

}  // namespace heed
