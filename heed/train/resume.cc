#include "heed/train/resume.h"

#include <algorithm>

#include "heed/train/run_summary.h"
#include "heed/train/settings_value.h"

namespace heed {
namespace {

// Settings that leave what was learned so far as it is. epochs and steps move the end of the schedule.
const std::vector<std::string> kMayChange{"epochs", "steps", "patience", "on_nan", "log_every", "save_every", "loaders", "device"};

bool may_change(const std::string& key) { return std::find(kMayChange.begin(), kMayChange.end(), key) != kMayChange.end(); }

std::string joined(const std::vector<Change>& differences) {
  std::string out;
  for (const Change& each : differences) out += (out.empty() ? "" : "; ") + each.text();
  return out;
}

}  // namespace

void check_paths_of(const Training& training, const Path& run) {
  const std::vector<std::string> missing = training.settings().missing_paths();
  if (missing.empty()) return;
  std::string directory;
  try {
    if (const std::optional<RunJson> about = read_run_json(run)) directory = about->directory;
  } catch (const FileError&) {  // it is only a hint
  }
  fail<FileError>((run / "config.toml").string(), ": ", missing[0], "=", quoted(training.settings().text(missing[0])),
                  ", which is not found from ", std::filesystem::current_path().string(),
                  ", expected the directory in which the run was begun", directory.empty() ? "" : ": " + directory,
                  "; go there, or write the whole path into config.toml");
}

Resumption::Resumption(const Path& run, const std::vector<std::string>& words) : run_(run) {
  for (const std::string& word : words)
    check<UsageError>(word.find('=') != std::string::npos, "train: found ", quoted(word),
                      " beside --resume, expected key=value; a run goes on with the settings that it began with");
  training_ = Training::resumed(run);
  try {
    if (const std::optional<RunJson> found = read_run_json(run)) about_ = *found, known_ = true;
  } catch (const FileError& error) {
    notes_.push_back(std::string(error.what()) + "; whether settings and data are those of before is not known");
  }
  if (known_) check_edits();
  for (const std::string& word : words) change(word);
  const int64_t done = summarize_run(run).epochs, epochs = training_->learning().epochs;
  check<UsageError>(done <= epochs, "train: epochs=", epochs, ", but the run has done ", done, ", expected ", done, " or more");
  check_paths_of(*training_, run);
}

void Resumption::check_edits() {
  std::vector<Change> refused;
  for (const Change& each : heed::settings_changed(about_.settings, training_->settings().json())) {
    // A path that was made absolute by hand is the same path.
    const bool same_path =
        Path(each.now).is_absolute() && (Path(about_.directory) / each.then).lexically_normal() == Path(each.now).lexically_normal();
    if (same_path) continue;
    if (may_change(each.key))
      notes_.push_back(each.key + "=" + each.now + ", as config.toml says now; the run had " + each.then), changed_ = true;
    else
      refused.push_back(each);
  }
  check<FileError>(refused.empty(), (run_ / "config.toml").string(), ": was edited since the run began: ", joined(refused),
                   "; a run goes on with the settings that it began with: undo the edit, or begin another run: heed train ",
                   training_->kind().name, " ", (run_ / "config.toml").string());
}

void Resumption::change(const std::string& word) {
  const size_t equals = word.find('=');
  const std::string typed = word.substr(0, equals), value = word.substr(equals + 1);
  if (typed == "data_changed") {
    check<UsageError>(value == "accept", "train: data_changed=", quoted(value), ", expected accept, or nothing");
    accept_data_ = true;
    return;
  }
  const Settings& settings = training_->settings();
  const std::string key = settings.key_of(typed), before = key.empty() ? "" : settings.text(key);
  training_->change(word);
  const std::string now = settings.text(key);
  if (now == before) return;
  check<UsageError>(may_change(key), "train: ", key, "=", now, " beside --resume: the run began with ", before.empty() ? "none" : before,
                    " and what it has learned so far goes with that; ", listed(kMayChange), " may change. Begin another run: heed train ",
                    training_->kind().name, " ", (run_ / "config.toml").string(), " ", word);
  notes_.push_back(key + "=" + now + ", before it was " + before);
  changed_ = true;
}

Task Resumption::make(const std::function<void(int64_t done, int64_t all)>& reading) {
  Task task = training_->make(reading);
  const std::vector<Change> differences = known_ ? data_changed(about_.data, task.data) : std::vector<Change>();
  if (differences.empty()) return task;
  check<FileError>(accept_data_, run_.string(), ": the data are not those that the run began with: ", joined(differences),
                   "; bring them back, or go on with these: heed train --resume ", run_.string(), " data_changed=accept");
  for (const Change& each : differences)
    check<FileError>(!each.key.ends_with(" classes"), run_.string(), ": the classes are not those that the run began with: ", each.text(),
                     ", and its model knows no others; begin another run, perhaps with from=", run_.string());
  const Path last = run_ / "last";
  check<FileError>(std::filesystem::is_directory(last), run_.string(),
                   ": the data are not those that the run began with, and no model is saved yet; begin another run");
  notes_.push_back("the data have changed, which was accepted: " + joined(differences));
  training_->keep_files_of(last);
  return training_->make(reading);
}

}  // namespace heed
