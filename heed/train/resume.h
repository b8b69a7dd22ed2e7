// A run that goes on: with the settings and the data that it began with. What has changed since is refused and named, but for settings
// that may change on the way.
#pragma once

#include "heed/train/run_json.h"
#include "heed/train/training.h"

namespace heed {

class Resumption {
 public:
  // words: key=value, of settings that may change: epochs and the like; or data_changed=accept. Others are UsageErrors, and so is an
  // epochs= that lies behind what is done. A config.toml that somebody edited is a FileError that says where.
  Resumption(const Path& run, const std::vector<std::string>& words);

  // Reads the data. Others than the run began with are a FileError that tells both, unless they were accepted.
  Task make(const std::function<void(int64_t done, int64_t all)>& reading = {});  // reading: as of Training::make

  const Training& training() const { return *training_; }
  const RunJson& about() const { return about_; }                   // of the run so far
  bool settings_changed() const { return changed_; }                // config.toml is to be written anew
  const std::vector<std::string>& notes() const { return notes_; }  // what differs from before, for people

 private:
  void check_edits();
  void change(const std::string& word);
  void check_paths() const;

  Path run_;
  std::unique_ptr<Training> training_;
  RunJson about_;
  bool known_ = false;  // the run has a run.json
  bool changed_ = false, accept_data_ = false;
  std::vector<std::string> notes_;
};

// An error where a path in the settings of a run leads nowhere because the run was begun in another directory.
void check_paths_of(const Training& training, const Path& run);

}  // namespace heed
