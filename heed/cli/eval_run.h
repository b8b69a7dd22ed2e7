// heed eval RUN without DATA: a model by the data of its own run, with the parts that the run made.
#pragma once

#include "heed/io/file.h"
#include "heed/train/task.h"

namespace heed::cli {

struct JudgedRun {
  Evaluation evaluation = {};
  std::string data = {}, what = {};  // the setting data=; "20 items, validation part of runs/classify/001"
};

// part: test, validation, or empty: the first that there is. model: a folder of the run
JudgedRun judge_by_run(const Path& run, const Path& model, const std::string& part, bool int8);

}  // namespace heed::cli
