#include "heed/train/training.h"

#include <unistd.h>

#include <algorithm>

#include "heed/models/cost.h"
#include "heed/ops/bf16_product.h"
#include "heed/train/model_folder.h"
#include "heed/train/report.h"
#include "heed/train/sample_json.h"
#include "heed/train/settings_value.h"

namespace heed {
namespace {

// The task that the settings of a run are for, which config.toml begins with.
std::string task_in(const Path& run) {
  const Path file = run / "config.toml";
  check<FileError>(std::filesystem::exists(file), run.string(), ": no run lies there: it has no config.toml");
  const std::string text = read_text(file, int64_t{1} << 20), key = "task = \"";
  const size_t at = text.find(key), end = at == std::string::npos ? at : text.find('"', at + key.size());
  check<FileError>(end != std::string::npos, file.string(), ": no task is named, expected task = \"classify\" or the like");
  return text.substr(at + key.size(), end - at - key.size());
}

void write_costs(const Task& task, const Path& file) {
  Json layers = Json::array();
  for (const ModelPart& part : cost_of(*task.model).parts)
    layers.push_back(
        {{"name", part.name}, {"parameters", part.count}, {"multiply_adds", part.multiply_adds}, {"bytes", part.activation_bytes}});
  write_json(file, {{"layers", layers}});
}

}  // namespace

Training::Training(const std::string& task) : kind_(task_kind(task)), task_(task) {
  chosen_.model.preset = kind_.preset;
  settings_.heading("Task");
  settings_.add("task", task_, "What is learned", {.words = {task}});
  make_ = kind_.declare(settings_);
  settings_.heading("Model");
  settings_.add("from", chosen_.from, "Folder of a model or of a run to begin with; empty: from scratch", {.path = true});
  declare(settings_, chosen_.model);
  declare(settings_, chosen_.learn);
}

std::unique_ptr<Training> Training::resumed(const Path& run) {
  auto training = std::make_unique<Training>(task_in(run));
  training->settings_.read(run / "config.toml");
  if (std::filesystem::exists(run / "given.toml")) training->settings_.keep_given(run / "given.toml");
  if (training->kind_.resume_older) training->kind_.resume_older(training->settings_);
  return training;
}

std::unique_ptr<Training> Training::judging(const Path& run, const Path& model) {
  std::unique_ptr<Training> training = resumed(run);
  Chosen& chosen = training->chosen_;
  chosen.model = {.preset = chosen.model.preset};  // config.json has it all
  chosen.from = model;
  for (const char* key : {"image", "resize"})
    if (!training->settings_.key_of(key).empty()) training->settings_.set(key, "model");  // as its preprocessor_config.json says
  chosen.learn.precision = "f32";
  return training;
}

void Training::tell(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word.find('=') == std::string::npos) {
      check<UsageError>(word.ends_with(".toml"), "train: found '", word, "', expected key=value or a .toml file");
      settings_.read(word);
    }
  for (const std::string& word : words)
    if (word.find('=') != std::string::npos) settings_.assign(word);
  notes_.insert(notes_.end(), settings_.notes().begin(), settings_.notes().end());
  const Preset& preset = preset_named(chosen_.model.preset);
  const std::vector<std::string>& families = kind_.families;
  check<UsageError>(std::find(families.begin(), families.end(), preset.family) != families.end(), "train: preset=", preset.name,
                    " is not for ", kind_.name, ", expected one of ", listed(presets_of(families)));
  apply_recipe(preset, settings_);
  use_model_of_run();
  settings_.absolute_paths();
  if (const int64_t heads = chosen_.from.empty() ? heads_for(chosen_.model) : 0) {
    settings_.set("heads", std::to_string(heads), Settings::By::preset);
    notes_.push_back("heads=" + settings_.text("heads") + ", as those of " + chosen_.model.preset +
                     " do not divide width=" + settings_.text("width"));
  }
}

// from=RUN begins with the best model of that run.
void Training::use_model_of_run() {
  if (chosen_.from.empty()) return;
  const std::string folder = model_folder(chosen_.from);
  if (folder == chosen_.from) return;
  notes_.push_back("from=" + chosen_.from + ": using " + folder);
  chosen_.from = folder;
}

Task Training::make(std::function<void(int64_t done, int64_t all)> reading) {
  check_precision(chosen_.learn, has_bf16());
  chosen_.reading = std::move(reading);
  Task task = make_(chosen_);
  settings_.set("best", task.metric, Settings::By::preset);  // the value in force, for config.toml
  return task;
}

void rewrite_settings(const RunFolder& run, const Settings& settings) {
  write_text(run.path() / "config.toml", settings.toml());
  if (std::filesystem::exists(run.path() / "given.toml")) write_text(run.path() / "given.toml", settings.given_toml());
}

// config.toml comes last: with it the folder is a run.
void write_settings(const RunFolder& run, const Settings& settings) {
  const Path given = run.path() / "given.toml";
  try {
    write_text(given, settings.given_toml());
    write_text(run.path() / "config.toml", settings.toml());
  } catch (...) {
    if (!std::filesystem::exists(run.path() / "config.toml")) ::unlink(given.c_str());
    ::rmdir(run.path().c_str());  // only where nothing is in it: a folder without settings is no run and should not take the name
    throw;
  }
}

Evaluation finish_run(const Task& task, RunFolder& run, int64_t best_epoch) {
  const NoGrad quiet;
  *task.model = load(run.path() / "best");
  const Evaluation evaluation = task.test ? task.test() : task.evaluate();
  Json figures = Json::object();
  for (const auto& [name, value] : evaluation.figures) figures[name] = value;
  write_json(run.path() / "evaluation.json",
             {{"part", task.test ? "test" : "validation"}, {"figures", figures}, {"detail", evaluation.detail}});
  if (task.samples) write_json(run.path() / "samples.json", Json(task.samples()));
  write_costs(task, run.path() / "costs.json");
  run.log("best epoch " + std::to_string(best_epoch) + ", on the " + (task.test ? "test" : "validation") +
          " part: " + figures_text(evaluation.figures));
  const std::vector<Path> runs{run.path()};
  write_text(run.path() / "report.html", report_page(runs));
  return evaluation;
}

}  // namespace heed
