// A model as people name it: the folder of a model, or that of a training run, which stands for the best model it has.
#pragma once

#include <vector>

#include "heed/io/file.h"

namespace heed {

bool is_run(const Path& folder);

// The run itself, or all runs in FOLDER/NAME and FOLDER/TASK/NAME: by task, then by name, with 999 before 1000.
std::vector<Path> runs_below(const Path& folder);

// Of a run: its best/, or last/ where it has no other. Everything else is given back as it is: who opens it says what is wrong with it.
// A run without a model is a FileError, a folder of runs a UsageError that names the newest of them.
Path model_folder(const Path& typed);

// The run that a folder is, or whose best/ or last/ it is; empty: none.
Path run_of_model(const Path& folder);

// A run as people name it: its folder, or one of its models'. Everything else is given back as it is, but for a folder of runs, which is
// the same UsageError as above.
Path run_folder(const Path& typed);

}  // namespace heed
