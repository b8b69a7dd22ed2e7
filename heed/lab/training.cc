#include "heed/lab/training.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "heed/core/work_count.h"
#include "heed/models/cost.h"
#include "heed/train/training_job.h"

namespace heed::lab {

namespace {

double metric_in(const Evaluation& evaluation, const std::string& name) {
  for (const auto& [each, value] : evaluation.figures)
    if (each == name) return value;
  fail("training: there is no metric '", name, "'");
}

// 0.521 -> "52.1"
std::string in_hundredths(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", 100 * share);
  return std::string(text.data()) == "-0.0" ? std::string("0.0") : std::string(text.data());
}

// "52.1 % (50.3 to 53.9)"
std::string in_hundredths(const Interval& interval, const std::string& unit) {
  return in_hundredths(interval.mean) + " " + unit + " (" + in_hundredths(interval.low) + " to " + in_hundredths(interval.high) + ")";
}

}  // namespace

double TrainedModel::metric(const std::string& name) const {
  const NoGrad no_grad;
  return metric_in(evaluate(), name);
}

std::vector<double> TrainedModel::curve(const std::string& name) const {
  std::vector<double> out;
  for (const Evaluation& epoch : epochs) out.push_back(metric_in(epoch, name));
  return out;
}

Series mean_curve(const std::string& name, const std::vector<std::vector<double>>& curves) {
  Series out{.name = name, .mark = Mark::both};
  for (size_t e = 0; e < curves.at(0).size(); ++e) {
    std::vector<double> values;
    for (const std::vector<double>& each : curves) values.push_back(each.at(e));
    out.x.push_back(static_cast<double>(e + 1)), out.y.push_back(mean_of(values));
    out.low.push_back(*std::min_element(values.begin(), values.end())), out.high.push_back(*std::max_element(values.begin(), values.end()));
  }
  return out;
}

TrainedModel run_training(const TrainingRun& run, const TemporaryFolder& folder, const std::string& name,
                          const ProgressCallback& progress) {
  TrainingJob training(run.task);
  training.apply(run.settings);
  Task task = training.make();
  if (run.modify_task) run.modify_task(task);
  TrainedModel out{.model = task.model, .evaluate = task.test ? task.test : task.evaluate};
  for (const auto& [part, count] : task.counts)
    if (part == (task.test ? "test" : "validation")) out.samples = static_cast<double>(count);
  task.evaluate = [metric = task.metric] { return Evaluation{.figures = {{metric, 0}}}; };  // nothing is evaluated during training
  task.tracked = {};
  task.first_samples = nullptr;
  RunFolder output = RunFolder::create(folder.path(), run.task, "");
  write_settings(output, training.settings());
  const TrainCallbacks callbacks{.epoch = [&](const EpochInfo& epoch) {
    for (const auto& [each, value] : epoch.figures)
      if (each == "train_loss") out.losses.push_back(value);
    if (run.curves) {
      const NoGrad no_grad;
      out.epochs.push_back(out.evaluate());
    }
    progress(name + ", epoch " + std::to_string(epoch.epoch) + " of " + std::to_string(epoch.epochs));
  }};
  out.steps = train_model(task, training.train_options(), output, callbacks).steps;
  out.folder = output.path() / "last";
  return out;
}

Path save_initial_model(const TrainingRun& run, const TemporaryFolder& folder, const std::string& name) {
  TrainingJob training(run.task);
  training.apply(run.settings);
  const Path path = folder.path() / name;
  save_model_folder(training.make(), path);
  return path;
}

void ImageTrainingRuns::declare(Settings& settings, bool by_epochs) {
  settings.add("data", data, "shapes: synthetic; or a folder of images, for example of Fashion-MNIST");
  settings.add("images", images, "training images", {.least = 20, .most = 1e6});
  if (by_epochs) settings.add("epochs", epochs, "passes over the training images", {.least = 1, .most = 1000});
  settings.add("seeds", seeds, "runs per variant, which differ only by their seed", {.least = 2, .most = 100});
  settings.add("width", width, "of tokens (hidden size)", {.least = 8, .most = 1024});
  settings.add("layers", layers, "of the encoder", {.least = 1, .most = 24});
  settings.add("heads", heads, "of attention", {.least = 1, .most = 64});
  settings.add("patch", patch, "side of a patch", {.least = 1, .most = 64});
  settings.add("rate", rate, "learning rate", {.least = 1e-6, .most = 1});
  settings.add("seed", seed, "of the first run");
}

TrainingRun ImageTrainingRuns::for_seed(uint64_t run_seed) const {
  // Generates three times as many shapes as are trained on, so that the test part is large enough.
  const std::string from = data == "shapes" ? "shapes:" + std::to_string(3 * images) : data;
  return {.task = "classify",
          .settings = {"data=" + from, setting("limit", images), setting("epochs", epochs), setting("rate", rate),
                       setting("seed", run_seed), "batch=64", "pad=0", "flip=false"}};
}

std::vector<std::string> ImageTrainingRuns::transformer() const {
  return {setting("width", width), setting("layers", layers), setting("heads", heads), setting("patch", patch)};
}

int64_t work_of_image(const Model& model) {
  const WorkCount count;
  run_example(model, {.batch = 1}, Purpose::inference);
  return count.multiply_adds();
}

void Trials::add(const TrainedModel& model, const std::string& metric) {
  values.push_back(model.metric(metric));
  samples = model.samples;
}

Interval difference(const Trials& a, const Trials& b) {
  check(a.values.size() == b.values.size(), "difference: found ", a.values.size(), " and ", b.values.size(),
        " trials, expected the same number");
  std::vector<double> values;
  for (size_t i = 0; i < a.values.size(); ++i) values.push_back(a.values[i] - b.values[i]);
  return difference_confidence(values, std::min(a.samples, b.samples));
}

std::string interval_text(const Interval& interval) { return in_hundredths(interval, "%"); }
std::string percent_text(double share) { return in_hundredths(share) + " %"; }
std::string points_text(const Interval& interval) { return in_hundredths(interval, "points"); }

}  // namespace heed::lab
