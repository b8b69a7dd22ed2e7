// A training run from the command line: its folder, progress output, Ctrl-C and the final report.
#pragma once

#include "heed/train/training_job.h"

namespace heed::cli {

enum class Output { people, quiet, json };

struct TrainRun {
  std::string runs = "runs", name = {};
  Output output = Output::people;
};

// Trains, evaluates and reports. -> the run's folder
Path start_training(TrainingJob& training, const TrainRun& options);
// Resumes a run. settings: changed settings, see ResumedRun
Path resume_training(const Path& run, const std::vector<std::string>& settings, const TrainRun& options);

}  // namespace heed::cli
