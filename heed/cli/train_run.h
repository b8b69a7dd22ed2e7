// A training run as commands do it: with its folder, its live line, Ctrl-C, and what to look at in the end.
#pragma once

#include "heed/train/training.h"

namespace heed::cli {

enum class Output { people, quiet, json };

struct TrainRun {
  std::string runs = "runs", name = {};
  Output output = Output::people;
};

// Learns, judges and reports. -> the run's folder
Path train_anew(Training& training, const TrainRun& options);
// words: settings that change on the way, see Resumption
Path train_on(const Path& run, const std::vector<std::string>& words, const TrainRun& options);

}  // namespace heed::cli
