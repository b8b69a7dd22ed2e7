// Writes the results of an epoch to the run folder.
#pragma once

#include "heed/train/optimizer_step.h"
#include "heed/train/trainer.h"

namespace heed {

// Metrics, event file, heads, and the models last/ and best/, with averaged weights if there are any.
void record_epoch(RunFolder& run, const Task& task, OptimizerStep& optimizer, const EpochInfo& epoch);

}  // namespace heed
