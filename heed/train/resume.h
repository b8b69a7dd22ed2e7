// Resuming a run with its original settings and data. Changes since then are errors that name the difference, except for settings that may
// change during a run.
#pragma once

#include "heed/train/run_json.h"
#include "heed/train/training_job.h"

namespace heed {

class ResumedRun {
 public:
  // arguments: key=value for settings that may change, such as epochs, or data_changed=accept. Others are UsageErrors, and so is epochs=
  // below the number of finished epochs. An edited config.toml is a FileError.
  ResumedRun(const Path& run, const std::vector<std::string>& arguments);

  // Reads the data. If they differ from the original data, throws a FileError that shows both, unless that was accepted.
  Task make(const std::function<void(int64_t done, int64_t all)>& reading = {});  // reading: as in TrainingJob::make

  const TrainingJob& training() const { return *training_; }
  const RunJson& about() const { return about_; }                   // contents of run.json
  bool settings_changed() const { return changed_; }                // config.toml must be rewritten
  const std::vector<std::string>& notes() const { return notes_; }  // changes to report to the user

 private:
  void check_edits();
  void change(const std::string& argument);

  Path run_;
  std::unique_ptr<TrainingJob> training_;
  RunJson about_;
  bool known_ = false;  // the run has a run.json
  bool changed_ = false, accept_data_ = false;
  std::vector<std::string> notes_;
};

// FileError if a relative path in the run's settings does not exist because the run was started in another directory.
void check_paths_of(const TrainingJob& training, const Path& run);

}  // namespace heed
