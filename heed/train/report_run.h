// The files of a run folder, parsed for reports. Missing files and damaged parts are left empty.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "heed/train/task.h"

namespace heed {

struct RunRow {  // a row of metrics.jsonl or speed.csv
  int64_t epoch = 0, step = 0;
  std::map<std::string, double> figures = {};  // finite values only: null in the file is skipped
};

struct SettingDoc {  // from the comments in config.toml
  std::string group = {}, meaning = {};
};

struct RunRecord {
  std::string task = {}, name = {};  // runs/<task>/<name>
  std::vector<RunRow> steps = {}, epochs = {}, speed = {};
  std::vector<std::pair<std::string, std::string>> settings = {};  // config.toml: dotted keys and values in file order
  std::map<std::string, SettingDoc> setting_docs = {};
  std::optional<std::set<std::string>> user_keys = {};  // keys set by the user; nullopt: not recorded
  Json evaluation = {}, costs = {};
  Json model = {};  // config.json of the best model, else of the last
  std::vector<Sample> samples = {};
  std::vector<std::string> log = {};      // last lines of log.txt
  std::vector<std::string> damaged = {};  // error messages of unreadable or partly unreadable files

  std::string setting(std::initializer_list<const char*> keys) const;  // value of the first key that is set
  bool finished() const;                                               // has a final evaluation, and was not extended by more epochs since
  std::string best_metric() const;                                     // the metric that selects the best model
  const RunRow* best_epoch() const;                                    // by that metric; null if no epoch has it
};

RunRecord read_run(const Path& folder);

}  // namespace heed
