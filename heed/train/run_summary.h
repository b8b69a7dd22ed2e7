// Summary of a run for lists of runs: data, progress, best metric, state.
#pragma once

#include <map>
#include <span>

#include "heed/train/report_run.h"

namespace heed {

struct RunSummary {
  Path path = {};
  std::string task = {}, name = {}, data = {}, model = {};  // model: the preset, or `from`
  std::string state = {};                                   // running, finished, stopped (Ctrl-C), interrupted (killed), diverged, failed
  int64_t epochs = 0, planned = 0, best_epoch = 0;          // finished ones; best_epoch 0: none yet
  std::string metric = {};                                  // selects the best epoch
  double best = 0, seconds = 0;                             // best: validation metric; seconds: over all epochs
  std::string evaluated_part = {};                          // data part of the final evaluation: "test"
  std::map<std::string, double> figures = {};               // of the final evaluation
  RunRecord record = {};                                    // also lists damaged files
};
RunSummary summarize_run(const Path& run);
Json to_json(const RunSummary& run);

// Settings that differ between runs with the value of every run ("" if unset), in file order.
using ComparedSettings = std::vector<std::pair<std::string, std::vector<std::string>>>;
ComparedSettings compared_settings(std::span<const RunRecord> runs);

}  // namespace heed
