// run.json in the folder of a run: what it began with, by which --resume knows what has changed since, and how it last ended. Runs of
// older versions have none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed {

struct RunJson {
  std::string state = "running";  // or stopped, finished, diverged, failed
  std::string directory = {};     // the working directory in which it was begun
  std::string metric = {};        // by which its best epoch is known
  Json settings = {};             // Settings::json()
  Json data = {};                 // Task::data
};

std::optional<RunJson> read_run_json(const Path& run);  // a damaged one is a FileError
void write_run_json(const Path& run, const RunJson& about);

// Keys whose values differ: "rate: 0.001 then, 0.01 now". Keys that one of them lacks are those of another version, and no difference.
struct Change {
  std::string key, then, now;
  std::string text() const;
};
std::vector<Change> settings_changed(const Json& then, const Json& now);

// The same of data: parts, and in each of them how many items, their classes, and checksums.
std::vector<Change> data_changed(const Json& then, const Json& now);

// Whether a process is writing to the run just now.
bool is_running(const Path& run);

}  // namespace heed
