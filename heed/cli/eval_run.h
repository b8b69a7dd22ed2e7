// heed eval RUN without DATA: evaluates a model on the data of its own run, with the run's train/validation split.
#pragma once

#include "heed/io/file.h"
#include "heed/train/task.h"

namespace heed::cli {

struct RunEvaluation {
  Evaluation evaluation = {};
  std::string data = {}, what = {};  // the setting data=; for example "20 items, validation part of runs/classify/001"
};

// part: test or validation; empty: test if there is one. model: a model folder of the run
RunEvaluation evaluate_on_run_data(const Path& run, const Path& model, const std::string& part, bool int8);

}  // namespace heed::cli
