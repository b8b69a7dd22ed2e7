// A whole training run, from settings to a trained model with its report, new or resumed.
#pragma once

#include "heed/core/api.h"
#include "heed/train/tasks.h"
#include "heed/train/trainer.h"

namespace HEED_API heed {

// The settings and the task of a run.
class TrainingJob {
 public:
  explicit TrainingJob(const std::string& task);                 // all settings at their defaults
  static std::unique_ptr<TrainingJob> resumed(const Path& run);  // settings from the run's config.toml
  // For evaluating a model of the run on the run's data, with the same split into parts.
  static std::unique_ptr<TrainingJob> for_evaluation(const Path& run, const Path& model);

  void apply(const std::vector<std::string>& arguments);  // key=value, or a TOML file
  // The settings, the kind of task, and the options of the training loop.
  const Settings& settings() const { return settings_; }
  const TaskKind& kind() const { return kind_; }
  const TrainOptions& train_options() const { return chosen_.train_options; }
  const std::vector<std::string>& notes() const { return notes_; }  // settings implied by others

  void change(const std::string& argument) { settings_.assign(argument); }  // for resumed runs
  // Reuses the tokenizer and preprocessing of that model although the data changed.
  void keep_files_of(const Path& model) { chosen_.keep = model; }

  // Reads the data and builds the model. reading: called with the number of decoded image files
  Task make(std::function<void(int64_t done, int64_t all)> reading = {});

 private:
  void use_model_of_run();

  const TaskKind& kind_;
  std::string task_;  // setting "task"
  JobOptions chosen_;
  Settings settings_;
  std::vector<std::string> notes_;
  std::function<Task(const JobOptions& chosen)> make_;
};

// Writes config.toml with all values, and given.toml with those set by the user.
void write_settings(const RunFolder& run, const Settings& settings);
void rewrite_settings(const RunFolder& run, const Settings& settings);  // for resumed runs; writes given.toml only if it exists

// After training: evaluates the best model on the test part (else validation), writes samples, costs and the report.
Evaluation finish_run(const Task& task, RunFolder& run, int64_t best_epoch);

}  // namespace heed
