// Resolves what the user typed to a model folder: the folder itself, or the best model of a training run.
#pragma once

#include <vector>

#include "heed/io/file.h"

namespace heed {

bool is_run(const Path& folder);

// The run itself, or all runs in FOLDER/NAME and FOLDER/TASK/NAME, sorted by task, then by name with 999 before 1000.
std::vector<Path> runs_below(const Path& folder);

// For a run, its best/, or last/ if there is no best/. Other paths are returned unchanged; opening them reports the error. A run without a
// model is a FileError, a folder of runs a UsageError that names the newest one.
Path model_folder(const Path& typed);

// The run that `folder` is, or whose best/ or last/ it is; empty if there is none.
Path run_of_model(const Path& folder);

// For a run or one of its models, the run's folder. Other paths are returned unchanged, except that a folder of runs is the same UsageError
// as above.
Path run_folder(const Path& typed);

}  // namespace heed
