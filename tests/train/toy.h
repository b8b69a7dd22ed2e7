// A task for tests of the loop: a vision transformer of one layer, and pictures of 8 x 8 pixels made by rule.
#pragma once

#include "heed/train/fit.h"
#include "heed/train/labels.h"
#include "heed/train/order.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
inline constexpr int64_t kSamples = 47, kPixels = 3 * 8 * 8;

inline LearnOptions quick() { return {.epochs = 3, .batch = 10, .rate = 0.01f, .log_every = 2}; }

// Three classes, each brighter than the one before. spoil: may change the numbers of a batch
inline Task toy(const LearnOptions& options, float dropout = 0,
                const std::function<void(int64_t epoch, const std::vector<int64_t>& which, std::vector<float>& pixels)>& spoil = {}) {
  Json config = model_config({.layers = 1, .heads = 2, .width = 16, .patch = 4, .dropout = dropout, .model = {{"image_size", 8}}});
  set_labels(config, {"dark", "grey", "bright"});
  Task task{.name = "toy", .model = std::make_shared<Model>(make_model(config, {.seed = options.seed}))};
  const auto made = [](const std::vector<int64_t>& which) {
    std::vector<float> pixels;
    for (const int64_t i : which) {
      Rng rng(static_cast<uint64_t>(100 + i));
      for (const float x : random_uniform({kPixels}, -1, 1, rng).to_vector<float>()) pixels.push_back(x + static_cast<float>(i % 3) - 1);
    }
    return pixels;
  };
  const auto inputs = [](const std::vector<int64_t>& which, const std::vector<float>& pixels) {
    std::vector<int64_t> labels;
    for (const int64_t i : which) labels.push_back(i % 3);
    const int64_t B = std::ssize(which);
    return Named{{"pixel_values", Tensor::from(pixels, {B, 3, 8, 8})}, {"labels", Tensor::from(labels, {B})}};
  };
  const auto learn = [model = task.model](const Named& named, const Ask& ask) {
    const Tensor logits = (*model)({{"pixel_values", named.at("pixel_values")}}, ask).at("logits");
    return Outcome{.loss = cross_entropy(logits, named.at("labels")), .shares = {{"accuracy", right_of(logits, named.at("labels"))}}};
  };
  task.batches = [options](int64_t epoch) { return shuffled_batches(kSamples, options.batch, options.seed, epoch); };
  task.batch = [=](int64_t epoch, const std::vector<int64_t>& which) {
    std::vector<float> pixels = made(which);
    if (spoil) spoil(epoch, which, pixels);
    return Batch{.inputs = inputs(which, pixels), .samples = std::ssize(which)};
  };
  task.learn = [=](const Batch& batch, const Ask& ask) { return learn(batch.inputs, ask); };
  task.evaluate = [=] {
    const std::vector<int64_t> which = batches_in_order(kSamples, kSamples)[0];
    const Outcome outcome = learn(inputs(which, made(which)), {});
    const Share& right = outcome.shares.at("accuracy");
    return Evaluation{.figures = {{"loss", outcome.loss.item()}, {"accuracy", right.sum / right.of}}};
  };
  return task;
}

// Sample 5 is all of that value in the second epoch.
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

// All that must be the same when a run is the same.
struct Left {
  std::string csv, jsonl, last, best;
  bool operator==(const Left&) const = default;
};
inline Left left_in(const Path& run) {
  return {get(run / "metrics.csv"), get(run / "metrics.jsonl"), get(run / "last/model.safetensors"), get(run / "best/model.safetensors")};
}

struct ToyRun {
  explicit ToyRun(const Folder& folder, const std::string& name = "run")
      : path(folder / ("toy/" + name)), run(std::filesystem::exists(path) ? RunFolder::open(path) : begun(folder, name)) {}
  static RunFolder begun(const Folder& folder, const std::string& name) {
    RunFolder made = RunFolder::create(folder.path(), "toy", name);
    put(made.path() / "config.toml", "");
    return made;
  }
  Path path;
  RunFolder run;
};

inline Left learned(const Task& task, const LearnOptions& options) {
  const Folder folder;
  ToyRun run(folder);
  fit(task, options, run.run);
  return left_in(run.path);
}

}  // namespace heed::test
