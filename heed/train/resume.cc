#include "heed/train/resume.h"

#include <algorithm>

#include "heed/train/run_summary.h"
#include "heed/train/settings_value.h"

namespace heed {
namespace {

// Settings that do not invalidate the training so far. epochs and steps move the end of the schedule.
const std::vector<std::string> kMayChange{"epochs",  "steps",  "patience", "on_nan", "log_every",      "save_every",
                                          "loaders", "device", "graph",    "shards", "shard_optimizer"};

bool may_change(const std::string& key) { return std::find(kMayChange.begin(), kMayChange.end(), key) != kMayChange.end(); }

std::string joined_changes(const std::vector<Change>& differences) {
  std::string out;
  for (const Change& each : differences) out += (out.empty() ? "" : "; ") + each.text();
  return out;
}

}  // namespace

void check_paths_of(const TrainingJob& training, const Path& run) {
  const std::vector<std::string> missing = training.settings().missing_paths();
  if (missing.empty()) return;
  std::string directory;
  try {
    if (const std::optional<RunJson> about = read_run_json(run)) directory = about->directory;
  } catch (const FileError&) {  // only a hint
  }
  fail<FileError>((run / "config.toml").string(), ": ", missing[0], "=", quoted(training.settings().text(missing[0])),
                  ", which is not found from ", std::filesystem::current_path().string(),
                  ", expected the directory in which the run was started", directory.empty() ? "" : ": " + directory,
                  "; change to it, or write the absolute path into config.toml");
}

ResumedRun::ResumedRun(const Path& run, const std::vector<std::string>& arguments) : run_(run) {
  for (const std::string& argument : arguments)
    check<UsageError>(parse_key_value(argument).has_value(), "train: found ", quoted(argument),
                      " with --resume, expected key=value; a run resumes with its original settings");
  training_ = TrainingJob::resumed(run);
  try {
    if (const std::optional<RunJson> found = read_run_json(run)) about_ = *found, known_ = true;
  } catch (const FileError& error) {
    notes_.push_back(std::string(error.what()) + "; cannot check whether settings and data are unchanged");
  }
  if (known_) check_edits();
  for (const std::string& argument : arguments) change(argument);
  const int64_t done = summarize_run(run).epochs, epochs = training_->train_options().epochs;
  check<UsageError>(done <= epochs, "train: epochs=", epochs, ", but the run has finished ", done, ", expected ", done, " or more");
  check_paths_of(*training_, run);
}

void ResumedRun::check_edits() {
  std::vector<Change> refused;
  for (const Change& each : heed::settings_changed(about_.settings, training_->settings().json())) {
    // The same path is no change, even if the user has made it absolute.
    const bool same_path =
        Path(each.now).is_absolute() && (Path(about_.directory) / each.then).lexically_normal() == Path(each.now).lexically_normal();
    if (same_path) continue;
    if (may_change(each.key))
      notes_.push_back(each.key + "=" + each.now + " from the edited config.toml; it was " + each.then), changed_ = true;
    else
      refused.push_back(each);
  }
  check<FileError>(refused.empty(), (run_ / "config.toml").string(), ": was edited since the run was started: ", joined_changes(refused),
                   "; a run resumes with its original settings: undo the edit, or start another run: heed train ", training_->kind().name,
                   " ", (run_ / "config.toml").string());
}

void ResumedRun::change(const std::string& argument) {
  const auto [typed, value] = key_value_in("train", argument);
  if (typed == "data_changed") {
    check<UsageError>(value == "accept", "train: data_changed=", quoted(value), ", expected accept");
    accept_data_ = true;
    return;
  }
  const Settings& settings = training_->settings();
  const std::string key = settings.key_of(typed), before = key.empty() ? "" : settings.text(key);
  training_->change(argument);
  const std::string now = settings.text(key);
  if (now == before) return;
  check<UsageError>(may_change(key), "train: ", key, "=", now, " with --resume: the run was started with ",
                    before.empty() ? "none" : before, "; only ", listed(kMayChange), " may change. Start another run: heed train ",
                    training_->kind().name, " ", (run_ / "config.toml").string(), " ", argument);
  notes_.push_back(key + "=" + now + "; it was " + before);
  changed_ = true;
}

Task ResumedRun::make(const std::function<void(int64_t done, int64_t all)>& reading) {
  Task task = training_->make(reading);
  const std::vector<Change> differences = known_ ? data_changed(about_.data, task.data) : std::vector<Change>();
  if (differences.empty()) return task;
  check<FileError>(accept_data_, run_.string(), ": the data have changed since the run was started: ", joined_changes(differences),
                   "; restore them, or resume with the new data: heed train --resume ", run_.string(), " data_changed=accept");
  for (const Change& each : differences)
    check<FileError>(!each.key.ends_with(" classes"), run_.string(), ": the classes have changed since the run was started: ", each.text(),
                     ", and the model cannot predict others; start another run, for example with from=", run_.string());
  const Path last = run_ / "last";
  check<FileError>(std::filesystem::is_directory(last), run_.string(),
                   ": the data have changed since the run was started, and no model is saved yet; start another run");
  notes_.push_back("the data have changed, accepted by data_changed=accept: " + joined_changes(differences));
  training_->keep_files_of(last);
  return training_->make(reading);
}

}  // namespace heed
