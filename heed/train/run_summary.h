// What a list of runs shows of each: what it learned from, how far it came, how good it is and how it ended.
#pragma once

#include <map>
#include <span>

#include "heed/train/report_run.h"

namespace heed {

struct RunSummary {
  Path path = {};
  std::string task = {}, name = {}, data = {}, model = {};  // model: a preset, or the folder that it began with
  std::string state = {};                           // running, finished, stopped (by Ctrl-C), interrupted (killed), diverged, failed
  int64_t epochs = 0, planned = 0, best_epoch = 0;  // complete ones; best_epoch 0: none yet
  std::string metric = {};                          // by which the best epoch is known
  double best = 0, seconds = 0;                     // of the validation part; seconds: of all epochs
  std::string judged = {};                          // the part that the best model was judged on in the end: "test"
  std::map<std::string, double> figures = {};       // of that
  RunRecord record = {};                            // with the names of damaged files
};
RunSummary summarize_run(const Path& run);
Json to_json(const RunSummary& run);

// Settings that differ, with the value of every run ("" where it has none), in the order of the files. The place and time of runs count as
// no setting.
using ComparedSettings = std::vector<std::pair<std::string, std::vector<std::string>>>;
ComparedSettings compared_settings(std::span<const RunRecord> runs);

}  // namespace heed
