// A whole run: from settings to a trained model with its report, and on from where a run ended.
#pragma once

#include "heed/train/fit.h"
#include "heed/train/tasks.h"

namespace heed {

// What a run is told. Words are key=value; the first may be a TOML file.
class Training {
 public:
  explicit Training(const std::string& task);                 // with every setting at its default
  static std::unique_ptr<Training> resumed(const Path& run);  // with the settings in the run's config.toml
  // To judge a model of the run by the data of the run: with its split into parts, whatever the model was begun with.
  static std::unique_ptr<Training> judging(const Path& run, const Path& model);

  void tell(const std::vector<std::string>& words);
  const Settings& settings() const { return settings_; }
  const TaskKind& kind() const { return kind_; }
  const LearnOptions& learning() const { return chosen_.learn; }
  const std::vector<std::string>& notes() const { return notes_; }  // settings that one which was told brought with it

  void change(const std::string& word) { settings_.assign(word); }  // of a resumed run
  // Tokenizer and preprocessing are those of that model, though the data are no longer the same.
  void keep_files_of(const Path& model) { chosen_.keep = model; }

  // Reads the data and builds the model. reading: told how many image files are decoded
  Task make(std::function<void(int64_t done, int64_t all)> reading = {});

 private:
  void use_model_of_run();

  const TaskKind& kind_;
  std::string task_;  // as config.toml has it
  Chosen chosen_;
  Settings settings_;
  std::vector<std::string> notes_;
  std::function<Task(const Chosen& chosen)> make_;
};

// config.toml, with which the run can go on, and given.toml: those of its values that a person chose.
void write_settings(const RunFolder& run, const Settings& settings);
void rewrite_settings(const RunFolder& run, const Settings& settings);  // of a resumed run; an older one has no given.toml and gets none

// When learning is over: the best model judged on the test part (or the validation part), samples, costs and the report.
Evaluation finish_run(const Task& task, RunFolder& run, int64_t best_epoch);

}  // namespace heed
