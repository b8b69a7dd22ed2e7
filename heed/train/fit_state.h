// Where a run stands: with the learner's tensors, all that it needs to go on.
#pragma once

#include "heed/train/task.h"

namespace heed {

struct FitState {
  int64_t epoch = 0, batch = 0, step = 0;  // complete epochs; batches of this one that are done; steps in all
  Rng rng{1};
  Share loss = {};  // of this epoch so far
  Shares shares = {};
  int64_t skipped = 0;
  int64_t best_epoch = 0, epochs_since_best = 0;  // best_epoch counts from 1; 0: none yet
  double best = 0;
  bool over = false;

  bool take_metric(const std::string& metric, double value);  // of the epoch that ends; true: it is the best so far
};

Json to_json(const FitState& state);
FitState fit_state_from(const Json& json);

}  // namespace heed
