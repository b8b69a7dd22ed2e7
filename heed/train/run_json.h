// run.json of a run: its initial settings and data, with which --resume detects changes, and its state. Runs of older versions do not have
// it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed {

struct RunJson {
  std::string state = "running";  // or stopped, finished, diverged, failed
  std::string directory = {};     // working directory at the start
  std::string metric = {};        // selects the best epoch
  Json settings = {};             // Settings::json()
  Json data = {};                 // Task::data
};

std::optional<RunJson> read_run_json(const Path& run);  // FileError if damaged
void write_run_json(const Path& run, const RunJson& about);

// A changed value: "rate: 0.001 then, 0.01 now". Keys that only one side has come from another version and do not count.
struct Change {
  std::string key, then, now;
  std::string text() const;
};
std::vector<Change> settings_changed(const Json& then, const Json& now);

// The same for data: per part, the number of items, the classes and the checksums.
std::vector<Change> data_changed(const Json& then, const Json& now);

// The process that writes to the run; none: it is not running.
std::optional<int> process_of_run(const Path& run);
inline bool is_running(const Path& run) { return process_of_run(run).has_value(); }

}  // namespace heed
