// Predicted costs of models against the counts of the ops and of the memory pool.
#include "heed/models/cost_run.h"

#include <gtest/gtest.h>

#include "heed/core/memory.h"
#include "heed/core/parallel.h"
#include "heed/models/choices.h"
#include "heed/train/presets.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

Model outline_of(const Json& config) { return make_model(config, {.names = {.shapes_only = true}}); }
InputSize resolved_size(const Json& config, InputSize size) { return resolve_input_size(outline_of(config), size); }

// The predicted multiply-adds of a call and of a training step are exactly those counted.
void expect_exact(const std::string& what, const Json& config, InputSize size) {
  const Model model = outline_of(config);
  const ModelCost cost = cost_of(model, size);
  EXPECT_EQ(cost.total.multiply_adds, measured_cost(model, cost.size, Purpose::inference, 0).multiply_adds) << what;
  if (!has_loss(model)) return;
  EXPECT_EQ(cost.total.training_multiply_adds, measured_cost(model, cost.size, Purpose::training, 0).multiply_adds) << what << ", training";
}

TEST(CostCounted, every_architecture) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Path(HEED_SOURCE_DIR) / "tests/fixtures")) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const Json config = read_json(entry.path() / "config.json");
    const bool text = input_kind(outline_of(config)) != InputKind::image;
    expect_exact(entry.path().filename(), config, {.batch = 2, .tokens = text ? 7 : 0});
    ++seen;
  }
  EXPECT_GE(seen, 30);
}

TEST(CostCounted, every_preset) {
  for (const Preset& preset : presets()) {
    Json config = preset.config;  // with few layers: a real run is part of the test
    for (const std::string& key : architecture_of(Config(config, "preset")).family->keys.layers) config[key] = 2;
    if (preset.name == "vit-base") config["image_size"] = 64;
    const bool text = input_kind(outline_of(config)) != InputKind::image;
    expect_exact(preset.name, config, {.batch = 1, .tokens = text ? 9 : 0});
  }
}

// The parts of a step: every module is counted under its own name, and the gradient of a layer is part of it.
TEST(CostCounted, by_module) {
  const ModelCost cost = cost_of(outline_of(preset_named("bert-mini").config), {.batch = 2, .tokens = 16});
  for (const ModelPart& part : cost.parts) {
    EXPECT_NE(part.name, "(other)");
    const bool matrix = !part.parameters.empty() && part.parameters[0].tensor.rank() == 2 && part.activation_bytes > 0;
    const bool looked_up = part.name.find("embeddings") != std::string::npos, last = part.name.find("layer.3") != std::string::npos;
    if (matrix && !looked_up && !last) {
      EXPECT_EQ(part.training_multiply_adds, 3 * part.multiply_adds) << part.name;
    }
  }
  const NoGrad no_grad;  // of the caller: training is counted all the same
  EXPECT_EQ(cost_of(outline_of(preset_named("bert-mini").config), cost.size).total.training_multiply_adds,
            cost.total.training_multiply_adds);
  EXPECT_EQ(cost.total.training_multiply_adds,
            measured_cost(outline_of(preset_named("bert-mini").config), cost.size, Purpose::training, 0).multiply_adds);
}

TEST(CostCounted, lengths_and_labels) {
  const Json translator = read_json(Path(HEED_SOURCE_DIR) / "tests/fixtures/marian-shared/config.json");
  expect_exact("translation", translator, {.batch = 3, .tokens = 9, .target = 4});
  const Json masked = read_json(Path(HEED_SOURCE_DIR) / "tests/fixtures/bert-masked/config.json");
  for (const int64_t labels : {1, 3, 8}) expect_exact("masked words", masked, {.batch = 2, .tokens = 9, .labels = labels});
}

TEST(CostCounted, variants) {
  Json vit = preset_named("vit-tiny").config;
  vit.update({{"hidden_size", 24}, {"num_attention_heads", 3}, {"intermediate_size", 40}, {"num_hidden_layers", 2}, {"image_size", 20}});
  std::vector<Json> images{
      {{"norm", "after"}},
      {{"positions", "relative"}, {"reach", 3}},
      {{"positions", "alibi"}, {"soft_cap", 20}},
      {{"positions", {"learned_2d", "gaussian"}}, {"pooling", "gap"}},
      {{"positions", "gaussian"}, {"pooling", "gap"}, {"content", false}},
      {{"positions", "gaussian"}, {"pooling", "gap"}, {"content", false}, {"project_values", false}},
      {{"positions", "gaussian_full"}, {"pooling", "gap"}, {"content", false}},
      {{"positions", "relative_2d"}, {"pooling", "gap"}, {"content", false}},
      {{"attention", "linear"}, {"features", "random"}},
      {{"pattern", {{"kind", "window"}, {"before", 3}, {"globals", 1}}}},
      {{"pattern", {{"kind", "chunks"}, {"size", 5}, {"shifted", true}}}},
      {{"stochastic_depth", 0.1}},
  };
  for (const char* key : {"positions", "pattern", "attention", "pooling"})
    for (const Choice& each : choices(key).all) {
      Json own{{key, each.name}};
      if (each.term && each.term->masks && !each.term->settings.empty()) own[key] = each.name + ":2";
      if (each.needs_grid && std::string(key) != "pooling") own["pooling"] = "gap";
      images.push_back(own);
    }
  for (const Json& own : images) {
    Json config = vit;
    config["heed"] = own;
    expect_exact(own.dump(), config, {.batch = 2});
  }
  Json dropped = vit;
  dropped["attention_probs_dropout_prob"] = 0.1;
  dropped["heed"] = {{"positions", "gaussian"}, {"pooling", "gap"}, {"content", false}};
  expect_exact("dropped weights", dropped, {.batch = 2});

  Json gpt = preset_named("gpt-mini").config;
  gpt.update({{"n_embd", 24}, {"n_head", 3}, {"n_inner", 40}, {"n_layer", 2}});
  for (const Json& own : std::vector<Json>{{{"positions", "rotary"}}, {{"positions", "relative"}}, {{"attention", "linear"}}}) {
    gpt["heed"] = own;
    expect_exact("gpt " + own.dump(), gpt, {.batch = 2, .tokens = 11});
  }
}

// Sizes are large and threads few, so that the scratch memory of tasks, some hundred KiB per thread, does not matter.
TEST(CostMemory, predicted_within_5_percent_of_the_pool) {
  const int before = thread_count();
  set_thread_count(2);
  const std::vector<std::pair<std::string, Json>> models{{"vit-tiny", {{"num_hidden_layers", 2}}},
                                                         {"bert-mini", {{"num_hidden_layers", 2}}},
                                                         {"gpt-mini", {{"n_layer", 2}}},
                                                         {"llama-mini", {{"num_hidden_layers", 2}}},
                                                         {"transformer-small", {{"encoder_layers", 1}, {"decoder_layers", 1}}},
                                                         {"gaussian-small", {{"num_hidden_layers", 1}}}};
  for (const auto& [name, fewer] : models) {
    Json config = preset_named(name).config;
    config.update(fewer);
    const bool text = input_kind(outline_of(config)) != InputKind::image;
    const InputSize size = resolved_size(config, {.batch = 4, .tokens = text ? 40 : 0});
    for (const Purpose purpose : {Purpose::inference, Purpose::training}) {
      const MemoryCost predicted = predicted_memory(outline_of(config), size, purpose);
      const MemoryCost found = measured_cost(outline_of(config), size, purpose, 0).memory;
      const auto activations = static_cast<double>(found.activations);
      EXPECT_EQ(predicted.weights, found.weights) << name;
      EXPECT_EQ(predicted.gradients, found.gradients) << name;
      EXPECT_NEAR(static_cast<double>(predicted.activations), activations, 0.05 * activations) << name << ' ' << static_cast<int>(purpose);
    }
  }
  set_thread_count(before);
}

TEST(CostMemory, of_models_larger_than_the_machine) {
  const Json config{{"architectures", {"LlamaForCausalLM"}},
                    {"hidden_size", 16384},
                    {"num_hidden_layers", 126},
                    {"num_attention_heads", 128},
                    {"num_key_value_heads", 8},
                    {"intermediate_size", 53248},
                    {"vocab_size", 128256},
                    {"tie_word_embeddings", false}};
  const InputSize size = resolved_size(config, {.batch = 1, .tokens = 64});
  const int64_t before = memory_use(kCpu).in_use;
  const MemoryCost memory = predicted_memory(outline_of(config), size, Purpose::training);
  const auto parameters = static_cast<double>(outline_of(config).params().count());
  EXPECT_NEAR(parameters, 405e9, 1e9);
  EXPECT_NEAR(static_cast<double>(memory.weights), 4 * parameters, 0.01 * 4 * parameters);
  EXPECT_EQ(memory_use(kCpu).in_use, before);
}

TEST(CostMemory, more_items_take_more) {
  const Json config = preset_named("vit-tiny").config;
  const auto activations = [&](int64_t batch) {
    return static_cast<double>(
        predicted_memory(outline_of(config), resolved_size(config, {.batch = batch}), Purpose::training).activations);
  };
  EXPECT_NEAR(activations(512) / activations(256), 2, 0.1);
}

TEST(CostMemory, bytes_moved) {
  const Json config = preset_named("vit-tiny").config;
  const ModelCost cost = cost_of(outline_of(config), {.batch = 2});
  const auto part = [&](const std::string& name) -> const ModelPart& {
    return *std::find_if(cost.parts.begin(), cost.parts.end(), [&](const ModelPart& each) { return each.name == name; });
  };
  EXPECT_EQ(part("vit.encoder.layer.0.intermediate.dense").moved_bytes, 4 * (2 * 65 * (192 + 768) + 192 * 768));
  EXPECT_EQ(part("vit.encoder.layer.0.intermediate.dense").training_moved_bytes, 3 * 4 * (2 * 65 * (192 + 768) + 192 * 768));
  EXPECT_EQ(part("vit.encoder.layer.5.intermediate.dense").training_moved_bytes, 3 * 4 * (2 * 1 * (192 + 768) + 192 * 768));
  EXPECT_EQ(part("vit.encoder.layer.0.attention.(attend)").moved_bytes, 4 * 2 * 65 * 4 * 192);
  EXPECT_EQ(cost.learned, cost.total.count);
}

}  // namespace
}  // namespace heed::test
