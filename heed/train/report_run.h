// What a report takes from a run folder. Files that are not there leave their part empty, and so does what is damaged in those that are.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "heed/train/task.h"

namespace heed {

struct RunRow {  // of metrics.jsonl or speed.csv
  int64_t epoch = 0, step = 0;
  std::map<std::string, double> figures = {};  // those that are numbers: what diverged is null in the file
};

struct SettingAbout {  // from the comments of config.toml
  std::string group = {}, meaning = {};
};

struct RunRecord {
  std::string task = {}, name = {};  // runs/<task>/<name>
  std::vector<RunRow> steps = {}, epochs = {}, speed = {};
  std::vector<std::pair<std::string, std::string>> settings = {};  // config.toml: dotted keys and their values, in its order
  std::map<std::string, SettingAbout> setting_about = {};
  std::optional<std::set<std::string>> given = {};  // keys that a person chose; nothing: the run does not say
  Json evaluation = {}, costs = {};
  Json model = {};  // config.json of the best model, or of the last
  std::vector<Sample> samples = {};
  std::vector<std::string> log = {};      // the last lines
  std::vector<std::string> damaged = {};  // what is wrong with files that could not be read, or not all of them

  std::string setting(std::initializer_list<const char*> keys) const;  // the first of them that says something
  bool finished() const;                                               // judged in the end, and not extended by more epochs since
  std::string best_metric() const;                                     // which chose the best model
  const RunRow* best_epoch() const;                                    // by that metric; null: none was judged by it
};

RunRecord read_run(const Path& folder);

}  // namespace heed
