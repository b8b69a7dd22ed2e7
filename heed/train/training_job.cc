#include "heed/train/training_job.h"

#include <unistd.h>

#include <algorithm>

#include "heed/io/paths.h"
#include "heed/models/cost.h"
#include "heed/ops/bf16_gemm.h"
#include "heed/train/model_folder.h"
#include "heed/train/report.h"
#include "heed/train/sample_json.h"
#include "heed/train/settings_value.h"
#include "heed/train/shards.h"

namespace heed {
namespace {

// The task in a run's config.toml.
std::string task_in(const Path& run) {
  const Path file = run / "config.toml";
  check<FileError>(std::filesystem::exists(file), run.string(), ": found no config.toml, expected a run folder");
  const std::string text = read_text(file, int64_t{1} << 20), key = "task = \"";
  const size_t at = text.find(key), end = at == std::string::npos ? at : text.find('"', at + key.size());
  check<FileError>(end != std::string::npos, file.string(), ": found no task, expected for example task = \"classify\"");
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

TrainingJob::TrainingJob(const std::string& task) : kind_(task_kind(task)), task_(task) {
  chosen_.model.preset = kind_.preset;
  settings_.listed_by("heed train " + task + " --settings");
  settings_.heading("Task");
  settings_.add("task", task_, "Training task", {.choices = {task}});
  make_ = kind_.declare(settings_);
  settings_.heading("Model");
  settings_.add("from", chosen_.from, "Folder of a model or run to start from; empty: from scratch", {.path = true});
  declare(settings_, chosen_.model);
  declare(settings_, chosen_.train_options);
}

std::unique_ptr<TrainingJob> TrainingJob::resumed(const Path& run) {
  auto training = std::make_unique<TrainingJob>(task_in(run));
  training->settings_.read(run / "config.toml");
  if (!training->settings_.given("shards")) training->settings_.set("shards", "1");  // of older versions
  if (std::filesystem::exists(run / "given.toml")) training->settings_.keep_given(run / "given.toml");
  if (training->kind_.resume_older) training->kind_.resume_older(training->settings_);
  return training;
}

std::unique_ptr<TrainingJob> TrainingJob::for_evaluation(const Path& run, const Path& model) {
  std::unique_ptr<TrainingJob> training = resumed(run);
  JobOptions& chosen = training->chosen_;
  chosen.model = {.preset = chosen.model.preset};  // the rest is in config.json
  chosen.from = model;
  for (const char* key : {"image", "resize"})
    if (!training->settings_.key_of(key).empty()) training->settings_.set(key, "model");  // use its preprocessor_config.json
  chosen.train_options.precision = "f32";
  chosen.train_options.shards = "0";  // any number of processes
  return training;
}

void TrainingJob::apply(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments)
    if (!parse_key_value(argument)) {
      check<UsageError>(argument.ends_with(".toml"), "train: found '", argument, "', expected key=value or a .toml file",
                        path_exists(argument) ? "; did you mean data=" + argument + "?" : "");
      settings_.read(argument);
    }
  for (const std::string& argument : arguments)
    if (parse_key_value(argument)) settings_.assign(argument);
  notes_.insert(notes_.end(), settings_.notes().begin(), settings_.notes().end());
  const Preset& preset = preset_named(chosen_.model.preset);
  const std::vector<std::string>& families = kind_.families;
  check<UsageError>(std::find(families.begin(), families.end(), preset.family) != families.end(), "train: preset=", preset.name,
                    " is not supported by ", kind_.name, ", expected one of ", listed(presets_of(families)));
  apply_training_settings(preset, settings_);
  use_model_of_run();
  settings_.absolute_paths();
  if (const int64_t heads = chosen_.from.empty() ? heads_for(chosen_.model) : 0) {
    settings_.set("heads", std::to_string(heads), Settings::By::preset);
    notes_.push_back("heads=" + settings_.text("heads") + ", as the heads of " + chosen_.model.preset +
                     " do not divide width=" + settings_.text("width"));
  }
}

// from=RUN loads the best model of that run.
void TrainingJob::use_model_of_run() {
  if (chosen_.from.empty()) return;
  const std::string folder = model_folder(chosen_.from);
  if (folder == chosen_.from) return;
  notes_.push_back("from=" + chosen_.from + ": using " + folder);
  chosen_.from = folder;
}

Task TrainingJob::make(std::function<void(int64_t done, int64_t all)> reading) {
  TrainOptions& options = chosen_.train_options;
  if (options.device != "auto") set_default_device(device_named(options.device));
  const bool on_cpu = default_device() == kCpu;
  if (options.precision == "auto") settings_.set("precision", on_cpu ? "f32" : "bf16", Settings::By::preset);
  if (on_cpu) check_precision(options, has_bf16());
  if (options.shards == "auto") settings_.set("shards", automatic_shards(world()), Settings::By::preset);
  shards_of(options, world());  // reports a wrong number before the data are read
  const auto is_set = [&](const char* key) { return !settings_.key_of(key).empty() && !settings_.text(key).empty(); };
  check<UsageError>(is_set("data") || is_set("train_source"),
                    "train: data is empty, expected a file, a folder or the name of synthetic data");
  chosen_.reading = std::move(reading);
  Task task = make_(chosen_);
  settings_.set("best", task.metric, Settings::By::preset);  // actual value, for config.toml
  return task;
}

void rewrite_settings(const RunFolder& run, const Settings& settings) {
  write_text(run.path() / "config.toml", settings.toml());
  if (std::filesystem::exists(run.path() / "given.toml")) write_text(run.path() / "given.toml", settings.given_toml());
}

// config.toml is written last: it marks the folder as a run.
void write_settings(const RunFolder& run, const Settings& settings) {
  const Path given = run.path() / "given.toml";
  try {
    write_text(given, settings.given_toml());
    write_text(run.path() / "config.toml", settings.toml());
  } catch (...) {
    if (!std::filesystem::exists(run.path() / "config.toml")) ::unlink(given.c_str());
    ::rmdir(run.path().c_str());  // only if empty: a folder without settings must not occupy the name
    throw;
  }
}

Evaluation finish_run(const Task& task, RunFolder& run, int64_t best_epoch) {
  Group& group = world();
  if (group.is_first()) {
    *task.model = load(run.path() / "best");
    write_costs(task, run.path() / "costs.json");  // with gradients: a training step is counted too
  }
  const NoGrad no_grad;
  for (const Parameter& parameter : task.model->params().all()) group.broadcast(parameter.tensor, 0);
  const Evaluation evaluation = task.test ? task.test() : task.evaluate();
  if (!group.is_first()) return evaluation;
  const WithoutOthers alone;
  Json figures = Json::object();
  for (const auto& [name, value] : evaluation.figures) figures[name] = value;
  write_json(run.path() / "evaluation.json",
             {{"part", task.test ? "test" : "validation"}, {"figures", figures}, {"detail", evaluation.detail}});
  if (task.samples) write_json(run.path() / "samples.json", Json(task.samples()));
  run.log("best epoch " + std::to_string(best_epoch) + ", on the " + (task.test ? "test" : "validation") +
          " part: " + figures_text(evaluation.figures));
  const std::vector<Path> runs{run.path()};
  write_text(run.path() / "report.html", report_page(runs));
  return evaluation;
}

}  // namespace heed
