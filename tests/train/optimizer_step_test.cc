// OptimizerStep against plain formulas.
#include "heed/train/optimizer_step.h"
#include "heed/models/architecture.h"

#include <cmath>
#include <limits>

#include "heed/core/parallel.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

// A matrix with weight decay, a bias without, and a running mean that is not trained.
Model small_model(uint64_t seed = 1) {
  auto params = std::make_unique<Params>(seed);
  params->get("weight", {3, 5}, initializer::normal(1));
  params->get("bias", {3}, initializer::normal(1), {.decays = false});
  params->get("running_mean", {3}, initializer::normal(1), {.learned = false});
  return {{}, std::move(params), architectures()[0], Json::object(), Json()};
}

// Gradients: `factor` times random numbers that depend only on the step.
void set_gradients(const Model& model, int step, float factor = 1) {
  Rng rng(static_cast<uint64_t>(step + 10));
  for (const Parameter& parameter : model.params().all()) {
    if (!parameter.options.learned) continue;
    parameter.tensor.zero_grad();
    backward(sum(parameter.tensor * random_normal(parameter.tensor.shape(), 0, factor, rng, parameter.tensor.device())));
  }
}

std::vector<float> values(const Model& model, size_t i) { return model.params().all()[i].tensor.to_vector<float>(); }

TrainOptions plain_sgd() { return {.optimizer = "sgd", .momentum = 0, .weight_decay = 0, .clip = 0}; }

TEST(OptimizerStep, changes_nothing_if_the_loss_is_not_finite) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    const Model model = small_model();
    TrainOptions options = plain_sgd();
    options.optimizer = optimizer;
    OptimizerStep optimizer_step(model, options);
    const std::vector<float> weight = values(model, 0);
    set_gradients(model, 0);
    for (const double loss : {std::numeric_limits<double>::infinity(), std::nan(""), 2.0}) {
      optimizer_step.begin(0.1f);
      const float norm = optimizer_step.apply(Tensor::full({}, loss, model.device())).item();
      optimizer_step.finish(norm);
      EXPECT_EQ(std::isfinite(norm), std::isfinite(loss));
      EXPECT_EQ(values(model, 0) == weight, !std::isfinite(loss)) << optimizer;
      EXPECT_EQ(optimizer_step.steps(), std::isfinite(loss) ? 1 : 0);
    }
  }
}

TEST(OptimizerStep, only_matrices_decay) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    const Model model = small_model();
    TrainOptions options = plain_sgd();
    options.optimizer = optimizer;
    options.weight_decay = 0.5f;
    OptimizerStep optimizer_step(model, options);
    const std::vector<float> weight = values(model, 0), bias = values(model, 1), mean = values(model, 2);
    set_gradients(model, 0, 0);  // only weight decay remains
    EXPECT_EQ(optimizer_step.step(0.1f), 0);
    for (size_t i = 0; i < weight.size(); ++i) EXPECT_NEAR(values(model, 0)[i], weight[i] * (1 - 0.1 * 0.5), 1e-6) << optimizer;
    EXPECT_EQ(values(model, 1), bias);
    EXPECT_EQ(values(model, 2), mean);
  }
}

TEST(OptimizerStep, clips_to_the_norm) {
  const Model model = small_model();
  TrainOptions options = plain_sgd();
  options.clip = 0.5f;
  OptimizerStep optimizer_step(model, options);
  for (const float factor : {100.0f, 0.01f}) {
    set_gradients(model, 1, factor);
    double squares = 0;
    for (size_t k = 0; k < 2; ++k)
      for (const float g : model.params().all()[k].tensor.grad().to_vector<float>()) squares += double{g} * g;
    const std::vector<float> before = values(model, 0), g = model.params().all()[0].tensor.grad().to_vector<float>();
    const float norm = optimizer_step.step(0.1f);
    EXPECT_NEAR(norm, std::sqrt(squares), 1e-5 * norm);
    const double scale = std::min(1.0, 0.5 / std::sqrt(squares));
    for (size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(values(model, 0)[i], before[i] - 0.1 * scale * g[i], 1e-6);
  }
}

TEST(OptimizerStep, a_gradient_that_is_not_finite_moves_nothing) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const Model model = small_model();
    OptimizerStep optimizer_step(model, {.average = 0.9f});
    set_gradients(model, 0);
    optimizer_step.step(0.1f);
    std::vector<std::vector<std::byte>> before;
    for (const auto& [name, tensor] : optimizer_step.tensors()) before.push_back(bytes_in(tensor));
    set_gradients(model, 1);
    const Tensor& bias = model.params().all()[1].tensor;
    backward(sum(bias * Tensor::from(std::vector<float>{0, bad, 0}, {3}, bias.device())));
    EXPECT_FALSE(std::isfinite(optimizer_step.step(0.1f)));
    size_t i = 0;
    for (const auto& [name, tensor] : optimizer_step.tensors()) EXPECT_EQ(bytes_in(tensor), before[i++]) << name;
    EXPECT_EQ(optimizer_step.steps(), 1);
  }
}

TEST(OptimizerStep, averages_follow_their_formula_and_replace_the_weights) {
  const Model model = small_model();
  TrainOptions options = plain_sgd();
  options.average = 0.6f;
  OptimizerStep optimizer_step(model, options);
  std::vector<float> weights = values(model, 0);
  std::vector<double> average(weights.begin(), weights.end());
  for (int step = 1; step <= 12; ++step) {
    set_gradients(model, step);
    optimizer_step.step(0.1f);
    weights = values(model, 0);
    const double decay = std::min(0.6, (1.0 + step) / (10.0 + step));
    for (size_t i = 0; i < average.size(); ++i) average[i] = decay * average[i] + (1 - decay) * weights[i];
  }
  {
    const AveragedWeights averaged(optimizer_step);
    for (size_t i = 0; i < average.size(); ++i) EXPECT_NEAR(values(model, 0)[i], average[i], 1e-5);
    EXPECT_NE(values(model, 0), weights);
  }
  EXPECT_EQ(values(model, 0), weights);
}

TEST(OptimizerStep, without_averages_nothing_is_swapped) {
  const Model model = small_model();
  OptimizerStep optimizer_step(model, plain_sgd());
  const std::vector<float> before = values(model, 0);
  const AveragedWeights averaged(optimizer_step);
  EXPECT_EQ(values(model, 0), before);
}

TEST(OptimizerStep, resumes_bit_for_bit_from_its_tensors) {
  for (const char* optimizer : {"sgd", "adam", "adamw"}) {
    const TrainOptions options{.optimizer = optimizer, .average = 0.9f};
    const Model model = small_model(1), other = small_model(2);
    OptimizerStep optimizer_step(model, options), second(other, options);
    for (int step = 0; step < 3; ++step) set_gradients(model, step), optimizer_step.step(0.1f);
    second.load(optimizer_step.tensors(), optimizer_step.steps(), "test");
    for (int step = 3; step < 6; ++step) {
      set_gradients(model, step), optimizer_step.step(0.1f);
      set_gradients(other, step), second.step(0.1f);
    }
    const NamedTensors a = optimizer_step.tensors(), b = second.tensors();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].first, b[i].first);
      EXPECT_EQ(bytes_in(a[i].second), bytes_in(b[i].second)) << optimizer << ' ' << a[i].first;
    }
  }
}

TEST(OptimizerStep, rejects_the_tensors_of_another_model) {
  const Model model = small_model();
  OptimizerStep optimizer_step(model, plain_sgd());
  NamedTensors tensors = optimizer_step.tensors();
  expect_error<FileError>([&] { optimizer_step.load({}, 0, "a checkpoint"); },
                          "a checkpoint: 0 tensors, expected 3; it belongs to another model");
  tensors[0].second = Tensor::zeros({5, 3}, kCpu);
  expect_error<FileError>([&] { optimizer_step.load(tensors, 0, "a checkpoint"); },
                          "a checkpoint: found no tensor model.weight of shape (3, 5)");
}

TEST(UpdateAverages, is_the_plain_formula_with_any_threads) {
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    Rng rng(3);
    Tensors averages, parameters;
    std::vector<std::vector<float>> expected;
    for (const Shape& shape : {Shape{1}, Shape{40001}, Shape{7, 5}}) {
      averages.push_back(random_normal(shape, 0, 1, rng, kCpu));
      parameters.push_back(random_normal(shape, 0, 1, rng, kCpu));
      expected.push_back(averages.back().to_vector<float>());
      const std::vector<float> w = parameters.back().to_vector<float>();
      for (size_t i = 0; i < w.size(); ++i) expected.back()[i] += 0.125f * (w[i] - expected.back()[i]);
    }
    update_averages(averages, parameters, 0.125f);
    results.emplace_back();
    for (size_t k = 0; k < averages.size(); ++k) {
      const std::vector<float> got = averages[k].to_vector<float>();
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[k][i], 1e-6) << k << ' ' << i;
      results.back().insert(results.back().end(), got.begin(), got.end());
    }
  }
  set_thread_count(2);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  expect_error([] { update_averages({Tensor::zeros({2}, kCpu)}, {}, 0.5f); }, "update_averages: 1 averages of 0 parameters");
  expect_error([] { update_averages({Tensor::zeros({2}, kCpu)}, {Tensor::zeros({3}, kCpu)}, 0.5f); },
               "update_averages: an average of shape");
}

}  // namespace
}  // namespace heed::test
