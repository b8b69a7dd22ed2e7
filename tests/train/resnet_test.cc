// Residual networks, in addition to parity_test.cc: training, running statistics and costs.
#include <algorithm>
#include <cmath>

#include "heed/io/safetensors.h"
#include "heed/models/cost.h"
#include "heed/train/training_job.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

const std::vector<std::string> kSmallResnet{"data=shapes:1200",
                                            "preset=resnet18",
                                            "model.hidden_sizes=[12,24,32]",
                                            "model.depths=[1,1,1]",
                                            "model.embedding_size=12",
                                            "model.image_size=16",
                                            "batch=40",
                                            "optimizer=adamw",
                                            "rate=0.01",
                                            "clip=0",
                                            "pad=0",
                                            "flip=false"};

std::unique_ptr<TrainingJob> small_resnet(const std::vector<std::string>& more = {}) {
  auto out = std::make_unique<TrainingJob>("classify");
  std::vector<std::string> arguments = kSmallResnet;
  arguments.insert(arguments.end(), more.begin(), more.end());
  out->apply(arguments);
  return out;
}

Json small_config(const std::string& kind) {
  return {{"architectures", {"ResNetForImageClassification"}},
          {"embedding_size", 4},
          {"hidden_sizes", {8, 12}},
          {"depths", {2, 1}},
          {"layer_type", kind},
          {"num_labels", 3},
          {"image_size", 10},
          {"heed", {{"stem", "small"}}}};
}

TensorMap some_images(int64_t B, int64_t height, int64_t width) {
  Rng rng(5);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < B; ++i) labels.push_back(i % 3);
  return {{"pixel_values", random_normal({B, 3, height, width}, 0, 1, rng, kCpu)}, {"labels", Tensor::from(labels, {B}, kCpu)}};
}

TEST(Resnet, stages_halve_the_image) {
  const Model model = make_model(small_config("basic"));
  const TensorMap out = model(some_images(2, 10, 7), {.hidden_states = true});
  EXPECT_EQ(out.at("logits").shape(), (Shape{2, 3}));
  EXPECT_EQ(out.at("hidden_states.0").shape(), (Shape{2, 4, 10, 7}));
  EXPECT_EQ(out.at("hidden_states.1").shape(), (Shape{2, 8, 10, 7}));
  EXPECT_EQ(out.at("hidden_states.2").shape(), (Shape{2, 12, 5, 4}));
  EXPECT_FALSE(out.contains("hidden_states.3"));
}

TEST(Resnet, a_saved_folder_has_every_name_of_a_batch_norm) {
  const Folder folder;
  const Model model = make_model(small_config("basic"));
  save(model, folder / "saved");
  const Safetensors file = Safetensors::open(folder / "saved/model.safetensors");
  EXPECT_TRUE(file.contains("resnet.embedder.embedder.normalization.num_batches_tracked"));
  const size_t known = model.params().stored().size(), units = (known - 2) / 5;  // five names per convolution, and two of the head
  EXPECT_EQ(file.names().size(), known + units);
  const TensorMap inputs = some_images(2, 10, 10);
  EXPECT_EQ(load(folder / "saved")(inputs).at("logits").to_vector<float>(), model(inputs).at("logits").to_vector<float>());
}

// A small step along the gradient changes the loss as predicted; so do steps of each parameter alone.
TEST(Resnet, gradients_are_those_of_the_loss) {
  for (const char* kind : {"basic", "bottleneck"}) {
    const Model model = make_model(small_config(kind));
    const TensorMap inputs = some_images(6, 10, 10);
    Rng rng(1);
    const auto loss = [&] { return model(inputs, {.mode = training_with(rng)}).at("loss"); };
    backward(loss());
    for (const Parameter& parameter : model.params().all()) {
      ASSERT_EQ(parameter.tensor.grad().defined(), parameter.options.learned) << parameter.name;
      if (!parameter.options.learned) continue;
      const std::vector<float> gradient = parameter.tensor.grad().to_vector<float>(), before = parameter.tensor.to_vector<float>();
      double square = 0;
      for (const float each : gradient) square += double{each} * each;
      if (square < 1e-8) continue;
      const NoGrad no_grad;
      const double step = 2e-3 / std::sqrt(square);
      const auto moved = [&](double by) {
        std::vector<float> values = before;
        for (size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(by * gradient[i]);
        copy_into(Tensor::from(values, parameter.tensor.shape(), parameter.tensor.device()), parameter.tensor);
        return static_cast<double>(loss().item());
      };
      const double slope = (moved(step) - moved(-step)) / (2 * step);
      moved(0);
      EXPECT_NEAR(slope, square, 0.05 * square + 1e-4) << kind << " " << parameter.name;
    }
  }
}

// Runs up to each of these steps in turn, as if stopped there; 0: to the end.
Path trained_resnet(const Folder& folder, const std::string& name, const std::vector<std::string>& arguments,
                    const std::vector<int64_t>& stops) {
  const Path path = folder / ("classify/" + name);
  for (const int64_t steps : stops) {
    const auto training = small_resnet(arguments);
    const Task task = training->make();
    RunFolder run = std::filesystem::exists(path) ? RunFolder::open(path) : RunFolder::create(folder.path(), "classify", name);
    write_settings(run, training->settings());
    int64_t done = 0;
    train_model(task, training->train_options(), run,
                {.step = [&](const StepInfo& step) { done = step.all_step; }, .stop = [&] { return steps > 0 && done >= steps; }});
  }
  return path;
}

TEST(Resnet, learns_shapes) {
  const Folder folder;
  const Path run = trained_resnet(folder, "learns", {"epochs=5"}, {0});
  std::istringstream lines(get(run / "metrics.jsonl"));
  Json last;
  for (std::string line; std::getline(lines, line);) last = Json::parse(line);
  EXPECT_EQ(last["kind"], "epoch");
  EXPECT_GT(last["validation_accuracy"], 0.75);  // random guessing: 0.1. Evaluated with the running statistics
  EXPECT_LT(last["train_loss"], 0.8);
  const Model saved = load(run / "last");
  const TensorMap inputs = some_images(4, 16, 16);
  for (const Parameter& parameter : saved.params().all()) {
    if (parameter.name != "resnet.embedder.embedder.normalization.running_mean") continue;
    const std::vector<float> before = parameter.tensor.to_vector<float>();
    EXPECT_GT(std::abs(before[0]), 1e-4);
    saved(inputs);
    EXPECT_EQ(parameter.tensor.to_vector<float>(), before);  // inference changes nothing
    Rng rng(1);
    saved(inputs, {.mode = training_with(rng)});
    EXPECT_NE(parameter.tensor.to_vector<float>(), before);
  }
}

TEST(Resnet, running_statistics_are_resumed) {
  const Folder folder;
  const std::vector<std::string> arguments{"epochs=2", "limit=160"};
  const Path peaceful = trained_resnet(folder, "peaceful", arguments, {0}),
             stopped = trained_resnet(folder, "stopped", arguments, {1, 5, 0});
  for (const char* file : {"metrics.jsonl", "last/model.safetensors", "best/model.safetensors"})
    EXPECT_TRUE(get(peaceful / file) == get(stopped / file)) << file;
}

// Forward updates them before the loss shows that the batch is bad.
TEST(Resnet, running_statistics_do_not_change_in_a_skipped_step) {
  const auto training = small_resnet({"limit=120", "epochs=1", "on_nan=skip"});
  Task task = training->make();
  task.batch = [good = task.batch](int64_t epoch, const std::vector<int64_t>& which) {
    Batch out = good(epoch, which);
    Tensor& pixels = out.inputs.at("pixel_values");
    if (std::find(which.begin(), which.end(), 5) != which.end()) pixels = Tensor::full(pixels.shape(), std::nan(""), kCpu);
    return out;
  };
  const Folder folder;
  RunFolder run = RunFolder::create(folder.path(), "classify", "skips");
  EXPECT_EQ(train_model(task, training->train_options(), run).skipped, 1);
  for (const Parameter& parameter : task.model->params().all())
    for (const float value : parameter.tensor.to_vector<float>()) ASSERT_TRUE(std::isfinite(value)) << parameter.name;
}

TEST(Resnet, costs_what_convolutions_count) {
  const Model model = make_model(preset_named("resnet18").config, {.names = {.shapes_only = true}});
  EXPECT_EQ(model.params().count(), 11173962);
  EXPECT_EQ(cost_of(model).total.multiply_adds, 555422720);
  // For every convolution by hand: rows x columns x outputs x inputs x taps, for both stems and both stride positions.
  const auto counted = [](Json config) { return cost_of(make_model(config)).total.multiply_adds; };
  Json basic = small_config("basic");
  EXPECT_EQ(counted(basic), 100 * 9 * (3 * 4 + 4 * 8 + 3 * 8 * 8) + 100 * 4 * 8 + 25 * 9 * (8 * 12 + 12 * 12) + 25 * 8 * 12 + 12 * 3);
  basic["heed"] = Json::object();  // 7 x 7 to 5 x 5 positions, then 3 x 3 in the stages
  EXPECT_EQ(counted(basic), 25 * 49 * 3 * 4 + 9 * 9 * (4 * 8 + 3 * 8 * 8) + 9 * 4 * 8 + 4 * 9 * (8 * 12 + 12 * 12) + 4 * 8 * 12 + 12 * 3);
  Json deep = small_config("bottleneck");
  EXPECT_EQ(counted(deep), 100 * (27 * 4 + 4 * 2 + 9 * 2 * 2 + 2 * 8 + 4 * 8 + 8 * 2 + 9 * 2 * 2 + 2 * 8) + 100 * 8 * 3 +
                               25 * (9 * 3 * 3 + 3 * 12 + 8 * 12) + 12 * 3);
  deep["downsample_in_bottleneck"] = true;
  EXPECT_EQ(counted(deep), 100 * (27 * 4 + 4 * 2 + 9 * 2 * 2 + 2 * 8 + 4 * 8 + 8 * 2 + 9 * 2 * 2 + 2 * 8) +
                               25 * (8 * 3 + 9 * 3 * 3 + 3 * 12 + 8 * 12) + 12 * 3);
}

TEST(Resnet, rejects_unsupported_settings) {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& message) {
    expect_error<UsageError>([&] { small_resnet(arguments)->make(); }, message);
  };
  refused({"heads=4"}, "model: heads=4 is not supported by resnet18, which has no attention");
  refused({"position=gaussian"}, "position=gaussian is not supported by resnet18");
  refused({"dropout=0.1"}, "dropout=0.1 is not supported by resnet18");
  refused({"model.hidden_size=4"}, "model.NAME='hidden_size' is not supported by resnet18");
  const auto broken = [](const char* key, const Json& value, const std::string& message) {
    Json config = small_config("basic");
    config[key] = value;
    expect_error<FileError>([&] { make_model(config); }, message);
  };
  broken("depths", {1, 1, 1}, "depths");
  broken("layer_type", "deep", "basic or bottleneck");
  broken("hidden_act", "gelu", "hidden_act");
  broken("heed", {{"stem", "large"}}, "published or small");
  broken("heed", {{"positions", "gaussian"}}, "heed.positions is not known");
  const Model model = make_model(small_config("basic"));
  expect_error(
      [&] {
        model({{"pixel_values", Tensor::zeros({2, 1, 8, 8}, kCpu)}});
      },
      "resnet: pixel_values of shape (2, 1, 8, 8), expected (B, 3, Y, X)");
}

}  // namespace
}  // namespace heed::test
