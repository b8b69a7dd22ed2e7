// A task for tests of the trainer: a one-layer vision transformer on synthetic 8 x 8 images.
#pragma once

#include "heed/train/batch_order.h"
#include "heed/train/labels.h"
#include "heed/train/trainer.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
inline constexpr int64_t kSamples = 47, kPixels = 3 * 8 * 8;

inline TrainOptions quick() { return {.epochs = 3, .batch = 10, .rate = 0.01f, .log_every = 2}; }

// Three classes of increasing brightness. spoil: may modify a batch
inline Task toy(const TrainOptions& options, float dropout = 0,
                const std::function<void(int64_t epoch, const std::vector<int64_t>& which, std::vector<float>& pixels)>& spoil = {}) {
  Json config = model_config({.layers = 1, .heads = 2, .width = 16, .patch = 4, .dropout = dropout, .model = {{"image_size", 8}}});
  set_labels(config, {"dark", "grey", "bright"});
  Task task{.name = "toy", .model = std::make_shared<Model>(make_model(config, {.seed = options.seed}))};
  const auto pixels_of = [](const std::vector<int64_t>& which) {
    std::vector<float> pixels;
    for (const int64_t i : which) {
      Rng rng(static_cast<uint64_t>(100 + i));
      for (const float x : random_uniform({kPixels}, -1, 1, rng, kCpu).to_vector<float>())
        pixels.push_back(x + static_cast<float>(i % 3) - 1);
    }
    return pixels;
  };
  const auto inputs = [](const std::vector<int64_t>& which, const std::vector<float>& pixels) {
    std::vector<int64_t> labels;
    for (const int64_t i : which) labels.push_back(i % 3);
    const int64_t B = std::ssize(which);
    return TensorMap{{"pixel_values", Tensor::from(pixels, {B, 3, 8, 8}, kCpu)}, {"labels", Tensor::from(labels, {B}, kCpu)}};
  };
  const auto forward = [model = task.model](const TensorMap& batch, const ForwardOptions& forward_options) {
    const Tensor logits = (*model)({{"pixel_values", batch.at("pixel_values")}}, forward_options).at("logits");
    return StepOutput{.loss = cross_entropy(logits, batch.at("labels").to(logits.device())),
                      .metrics = {{"accuracy", accuracy_of(logits, batch.at("labels"))}}};
  };
  task.batches = [options](int64_t epoch) { return shuffled_batches(kSamples, options.batch, options.seed, epoch); };
  task.batch = [=](int64_t epoch, const std::vector<int64_t>& which) {
    std::vector<float> pixels = pixels_of(which);
    if (spoil) spoil(epoch, which, pixels);
    return Batch{.inputs = inputs(which, pixels), .samples = std::ssize(which)};
  };
  task.forward = [=](const Batch& batch, const ForwardOptions& forward_options) { return forward(batch.inputs, forward_options); };
  task.evaluate = [=] {
    const std::vector<int64_t> which = batches_in_order(kSamples, kSamples)[0];
    const StepOutput outcome = forward(inputs(which, pixels_of(which)), {});
    const RunningMean right = outcome.metrics.at("accuracy").value();
    return Evaluation{.figures = {{"loss", outcome.loss.item()}, {"accuracy", right.sum / right.count}}};
  };
  return task;
}

// Fills sample 5 with that value in the second epoch.
inline auto spoiled_with(float value) {
  return [value](int64_t epoch, const std::vector<int64_t>& which, std::vector<float>& pixels) {
    for (size_t i = 0; i < which.size(); ++i)
      if (epoch == 1 && which[i] == 5) std::fill_n(pixels.begin() + static_cast<int64_t>(i) * kPixels, kPixels, value);
  };
}

inline std::vector<float> weights_of(const Model& model) {
  std::vector<float> all;
  for (const Parameter& parameter : model.params().all()) {
    const std::vector<float> some = parameter.tensor.to_vector<float>();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

inline void expect_near(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

// Files that must be identical for identical runs.
struct RunFiles {
  std::string csv, jsonl, last, best;
  bool operator==(const RunFiles&) const = default;
};
inline RunFiles files_of(const Path& run) {
  return {get(run / "metrics.csv"), get(run / "metrics.jsonl"), get(run / "last/model.safetensors"), get(run / "best/model.safetensors")};
}

struct ToyRun {
  explicit ToyRun(const Folder& folder, const std::string& name = "run")
      : path(folder / ("toy/" + name)), run(std::filesystem::exists(path) ? RunFolder::open(path) : create(folder, name)) {}
  static RunFolder create(const Folder& folder, const std::string& name) {
    RunFolder created = RunFolder::create(folder.path(), "toy", name);
    put(created.path() / "config.toml", "");
    return created;
  }
  Path path;
  RunFolder run;
};

inline RunFiles train_toy(const Task& task, const TrainOptions& options) {
  const Folder folder;
  ToyRun run(folder);
  train_model(task, options, run.run);
  return files_of(run.path);
}

}  // namespace heed::test
