// The parameter store: reading, initializing, tying, errors, saving.
#include "heed/nn/params.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/nn/linear.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

TEST(Params, values_depend_only_on_seed_and_name) {
  Params first(1), second(1), other(2);
  const Initializer draw = initializer::normal(1);
  const Tensor a = first.get("a", {3, 5}, draw), b = first.get("b", {3, 5}, draw);
  const Tensor b_again = second.get("b", {3, 5}, draw), a_again = second.get("a", {3, 5}, draw);
  EXPECT_EQ(values(a), values(a_again));
  EXPECT_EQ(values(b), values(b_again));
  EXPECT_NE(values(a), values(b));
  EXPECT_NE(values(a), values(other.get("a", {3, 5}, draw)));
}

TEST(Params, the_same_name_gives_the_same_tensor) {
  Params params(1);
  const Scope root(params, initializer::bert());
  const Embedding tokens(root / "tokens", 7, 4);
  const Linear head(root / "tokens", 4, 7, {.bias = false});
  EXPECT_TRUE(head.weight.shares_data_with(tokens.weight));
  EXPECT_EQ(params.all().size(), 1u);
  backward(sum(head(tokens(Tensor::from(std::vector<int64_t>{1, 2}, {2}, test_device())))));
  EXPECT_EQ(values(head.weight.grad()), values(tokens.weight.grad()));
  expect_error(
      [&] {
        params.get("tokens.weight", {4, 7}, initializer::zeros());
      },
      "params: tokens.weight requested with shape (4, 7), before with (7, 4)");
}

TEST(Params, are_ordered_and_have_the_flags_for_optimizers) {
  Params params(1);
  const Scope layer = Scope(params, initializer::bert()) / "layers" / 3;
  const Linear dense(layer / "dense", 3, 2);
  layer.get("mean", {5}, initializer::zeros(), {.learned = false});
  ASSERT_EQ(params.all().size(), 3u);
  EXPECT_EQ(params.all()[0].name, "layers.3.dense.weight");
  EXPECT_EQ(params.all()[1].name, "layers.3.dense.bias");
  EXPECT_EQ(params.all()[2].name, "layers.3.mean");
  EXPECT_TRUE(params.all()[0].options.decays && params.all()[0].tensor.needs_grad());
  EXPECT_TRUE(!params.all()[1].options.decays && params.all()[1].tensor.needs_grad());
  EXPECT_FALSE(params.all()[2].tensor.needs_grad());
  EXPECT_EQ(params.count(), 3 * 2 + 2);
}

TEST(Params, round_trip_through_a_file) {
  const Folder folder;
  const auto build = [](Params& params) {
    const Scope root(params, initializer::bert());
    return std::pair(Linear(root / "plain", 3, 2), Linear(root / "transposed", 3, 2, {.stored_transposed = true}));
  };
  Params params(1);
  const auto saved = build(params);
  write_safetensors(folder / "model.safetensors", params.stored());
  EXPECT_EQ(Safetensors::open(folder / "model.safetensors").entry("transposed.weight").shape, (Shape{3, 2}));
  write_sharded(folder / "sharded", params.stored(), 16);
  for (const Path& path : {folder / "model.safetensors", folder / "sharded"}) {
    Params loaded(path, 99);
    const auto back = build(loaded);
    loaded.finish();
    EXPECT_EQ(values(back.first.weight), values(saved.first.weight));
    EXPECT_EQ(values(back.second.weight), values(saved.second.weight));
    EXPECT_TRUE(back.second.weight.is_contiguous() && back.second.weight.needs_grad());
    for (const Parameter& parameter : loaded.all()) EXPECT_TRUE(parameter.read) << parameter.name;
  }
}

TEST(Params, half_precision_is_read_as_f32) {
  const Folder folder;
  const Tensor x = counted({2, 3}, DType::f32);
  write_safetensors(folder / "halves.safetensors", {{"a", converted(x, DType::f16)}, {"b", converted(x, DType::bf16)}});
  Params params(folder / "halves.safetensors", 1);
  for (const char* name : {"a", "b"}) expect_same(params.get(name, {2, 3}, initializer::zeros()).detach(), x);
  params.finish();
}

TEST(Params, mismatches_with_a_file_are_listed) {
  const Folder folder;
  const Path path = folder / "other.safetensors";
  write_safetensors(path, {{"encoder.weight", Tensor::ones({2, 3}, test_device())},
                           {"pooler.weight", Tensor::ones({1}, test_device())},
                           {"head.bias", Tensor::ones({5}, test_device())}});
  const auto build = [&](const LoadOptions& options) {
    Params params(path, 1, options);
    params.get("encoder.weight", {2, 3}, initializer::zeros());
    params.get("encoder.bias", {2}, initializer::zeros());
    const Tensor head = params.get("head.bias", {4}, initializer::zeros());
    EXPECT_EQ(values(head), std::vector<float>(4, 0));
    params.finish();
  };
  expect_error<FileError>([&] { build({}); }, path.string() +
                                                  ": does not fit the model\n  1 missing: \"encoder.bias\"\n  1 not used: \"pooler.weight\""
                                                  "\n  1 of another shape: \"head.bias\" (5), expected (4)");
  expect_error<FileError>([&] { build({.allow_missing = {""}}); }, "not used: \"pooler.weight\"");
  expect_error<FileError>([&] { build({.allow_missing = {"head"}, .allow_unused = {"pooler"}}); }, "1 missing: \"encoder.bias\"");
  build({.allow_missing = {"head", "bias"}, .allow_unused = {"pooler"}});
}

TEST(Params, tensors_can_have_other_names_in_files) {
  const Folder folder;
  write_safetensors(folder / "one.safetensors", {{"lm_head.weight", Tensor::ones({2, 3}, test_device())}});
  write_safetensors(folder / "both.safetensors",
                    {{"lm_head.weight", Tensor::zeros({2, 3}, test_device())}, {"wte.weight", Tensor::ones({2, 3}, test_device())}});
  for (const char* name : {"one.safetensors", "both.safetensors"}) {
    Params params(folder / name, 1);
    params.alias("lm_head.weight", "wte.weight");
    EXPECT_EQ(values(params.get("wte.weight", {2, 3}, initializer::zeros())), std::vector<float>(6, 1));
    params.finish();
    EXPECT_EQ(params.stored()[0].first, "wte.weight");
    expect_error([&] { params.alias("other", "wte.weight"); }, "params: wte.weight was requested before its alias other was set");
  }
  EXPECT_FALSE(Params(1).file_has("wte.weight"));
  EXPECT_TRUE(Params(folder / "both.safetensors", 1).file_has("wte.weight"));
}

TEST(Params, invalid_requests_fail) {
  Params params(1);
  expect_error([&] { params.get("a", {2}, {}); }, "params: a has no initializer");
  expect_error([&] { params.get("a", {2}, [](const Shape&, Rng&) { return Tensor::ones({3}, test_device()); }); },
               "gives shape (3), expected (2)");
  expect_error([&] { params.get("a", {2}, initializer::ones(), {.stored_transposed = true}); }, "has shape (2), expected two axes");
}

struct Statistics {
  double mean = 0, deviation = 0, largest = 0;
};

Statistics statistics(const Initializer& draw, const Shape& shape) {
  Rng rng(5);
  Statistics s;
  const std::vector<float> x = values(draw(shape, rng));
  for (float each : x) s.mean += each / static_cast<double>(x.size());
  for (float each : x) {
    s.deviation += (each - s.mean) * (each - s.mean) / static_cast<double>(x.size());
    s.largest = std::max(s.largest, std::abs(static_cast<double>(each)));
  }
  s.deviation = std::sqrt(s.deviation);
  return s;
}

TEST(Initializer, samples_have_the_documented_moments) {
  const Shape weight{300, 200}, kernel{60, 20, 5, 5};
  struct Expectation {
    Initializer draw;
    Shape shape;
    double deviation, largest;
  };
  const auto bound = [](double deviation) { return std::sqrt(3) * deviation; };
  const double cut = 0.8796256610342398;  // deviation of a standard normal between -2 and 2
  for (const Expectation& e :
       std::vector<Expectation>{{initializer::normal(0.02f), weight, 0.02, 1},
                                {initializer::truncated_normal(0.02f), weight, 0.02 * cut, 0.04},
                                {initializer::uniform(0.3f), weight, 0.3 / std::sqrt(3), 0.3},
                                {initializer::xavier_uniform(), weight, std::sqrt(2.0 / 500), bound(std::sqrt(2.0 / 500))},
                                {initializer::kaiming_normal(), kernel, std::sqrt(2.0 / 500), 1},
                                {initializer::lecun_normal(), weight, std::sqrt(1.0 / 200), 1}}) {
    const Statistics s = statistics(e.draw, e.shape);
    EXPECT_NEAR(s.mean, 0, 4 * e.deviation / std::sqrt(30000.0));
    EXPECT_NEAR(s.deviation, e.deviation, 0.02 * e.deviation);
    EXPECT_LE(s.largest, e.largest * 1.000001);
  }
  EXPECT_EQ(statistics(initializer::ones(), {8}).mean, 1);
  EXPECT_NEAR(statistics(initializer::normal(0.01f, 3), weight).mean, 3, 1e-3);
  Rng rng(1);
  expect_error([&] { initializer::xavier_uniform()({3}, rng); }, "initializer: a weight of shape (3), expected (O, I)");
}

TEST(Initializer, parts_of_fused_weights_are_initialized_like_separate_ones) {
  const Statistics fused = statistics(initializer::in_parts({100, 100, 100}, initializer::xavier_uniform()), {300, 100});
  EXPECT_NEAR(fused.deviation, 0.1, 0.002);
  EXPECT_GT(fused.largest, 0.99 * std::sqrt(3) * 0.1);
}

TEST(Initializer, presets_follow_their_papers) {
  const Shape shape{256, 256};
  EXPECT_NEAR(statistics(initializer::original(64).embedding, shape).deviation, 0.125, 0.002);
  EXPECT_NEAR(statistics(initializer::original(64).weight, shape).deviation, 0.0625, 0.001);
  EXPECT_LE(statistics(initializer::bert().weight, shape).largest, 0.04);
  EXPECT_NEAR(statistics(initializer::gpt2(8).residual, shape).deviation, 0.005, 1e-4);
  EXPECT_NEAR(statistics(initializer::gpt2(8).weight, shape).deviation, 0.02, 4e-4);
  EXPECT_NEAR(statistics(initializer::vit().patch, {256, 3, 4, 4}).deviation, std::sqrt(1.0 / 48), 0.003);
}

}  // namespace
}  // namespace heed::test
