#include "heed/lab/learn.h"

#include <cmath>
#include <cstdio>

#include "heed/core/work_count.h"
#include "heed/models/config.h"
#include "heed/train/training.h"

namespace heed::lab {

double Learned::figure(const std::string& name) const {
  const NoGrad quiet;
  const Evaluation evaluation = judge();
  for (const auto& [each, value] : evaluation.figures)
    if (each == name) return value;
  fail("learn: there is no figure '", name, "'");
}

Learned learn(const Lesson& lesson, const TemporaryFolder& folder, const std::string& name, const Say& say) {
  Training training(lesson.task);
  training.tell(lesson.words);
  Task task = training.make();
  if (lesson.set) lesson.set(task);
  Learned out{.model = task.model, .judge = task.test ? task.test : task.evaluate};
  task.evaluate = [metric = task.metric] { return Evaluation{.figures = {{metric, 0}}}; };  // nobody looks before the end
  task.followed = {};
  task.first_samples = nullptr;
  RunFolder run = RunFolder::create(folder.path(), lesson.task, "");
  write_settings(run, training.settings());
  const Watch watch{.epoch = [&](const EpochDone& epoch) {
    for (const auto& [each, value] : epoch.figures)
      if (each == "train_loss") out.losses.push_back(value);
    say(name + ", epoch " + std::to_string(epoch.epoch) + " of " + std::to_string(epoch.epochs));
  }};
  out.steps = fit(task, training.learning(), run, watch).steps;
  out.folder = run.path() / "last";
  return out;
}

Path begun(const Lesson& lesson, const TemporaryFolder& folder, const std::string& name) {
  Training training(lesson.task);
  training.tell(lesson.words);
  const Path path = folder.path() / name;
  save_model_folder(training.make(), path);
  return path;
}

void PictureLessons::declare(Settings& settings) {
  settings.add("data", data, "shapes: made by rule; or a folder of pictures, of Fashion-MNIST for example");
  settings.add("pictures", pictures, "to learn from", {.least = 20, .most = 1e6});
  settings.add("epochs", epochs, "passes over them", {.least = 1, .most = 1000});
  settings.add("seeds", seeds, "runs of each kind, which differ by chance alone", {.least = 2, .most = 100});
  settings.add("width", width, "of tokens", {.least = 8, .most = 1024});
  settings.add("layers", layers, "of the encoder", {.least = 1, .most = 24});
  settings.add("heads", heads, "of attention", {.least = 1, .most = 64});
  settings.add("patch", patch, "side of a patch", {.least = 1, .most = 64});
  settings.add("rate", rate, "of learning", {.least = 1e-6, .most = 1});
  settings.add("seed", seed, "the first one");
}

Lesson PictureLessons::lesson(uint64_t of_seed) const {
  // Three times as many shapes are made, of which every third is learned from: there are more to test with then.
  const std::string from = data == "shapes" ? "shapes:" + std::to_string(3 * pictures) : data;
  return {.task = "classify",
          .words = {"data=" + from, word("limit", pictures), word("epochs", epochs), word("rate", rate), word("seed", of_seed), "batch=64",
                    "pad=0", "flip=false"}};
}

std::vector<std::string> PictureLessons::transformer() const {
  return {word("width", width), word("layers", layers), word("heads", heads), word("patch", patch)};
}

int64_t work_of_picture(const Model& model) {
  const NoGrad quiet;
  std::vector<int64_t> image = Config(model.config(), "config.json").sizes("image_size", {224});
  image.resize(2, image[0]);
  const Tensor pixels = Tensor::zeros({1, 3, image[0], image[1]});
  const WorkCount count;
  model({{"pixel_values", pixels}});
  return count.multiply_adds();
}

Trials differences(const Trials& a, const Trials& b) {
  check(a.values.size() == b.values.size(), "differences: of ", a.values.size(), " and ", b.values.size(), " trials, expected as many");
  Trials out;
  for (size_t i = 0; i < a.values.size(); ++i) out.values.push_back(a.values[i] - b.values[i]);
  return out;
}

std::string interval_text(const Interval& interval) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%.1f %% (%.1f to %.1f)", 100 * interval.mean, 100 * interval.low, 100 * interval.high);
  return text.data();
}

}  // namespace heed::lab
