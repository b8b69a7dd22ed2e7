// Progress of a run. Together with the tensors of OptimizerStep, everything needed to resume.
#pragma once

#include "heed/train/task.h"

namespace heed {

struct TrainState {
  int64_t epoch = 0, batch = 0, step = 0;  // finished epochs; finished batches of this epoch; steps in total
  Rng rng{1};
  RunningMean loss = {};  // mean over this epoch so far
  RunningMeans metrics = {};
  int64_t skipped = 0;
  int64_t best_epoch = 0, epochs_since_best = 0;  // best_epoch counts from 1; 0: none yet
  double best = 0;
  bool over = false;

  bool take_metric(const std::string& metric, double value);  // at the end of an epoch; returns whether it is the best so far
};

Json to_json(const TrainState& state);
TrainState train_state_from(const Json& json);

}  // namespace heed
