// Presets and model settings: every supported choice of every family builds and runs, others are rejected.
#include "heed/train/presets.h"

#include <gtest/gtest.h>

#include "heed/core/autograd.h"
#include "heed/models/architecture.h"
#include "heed/models/model.h"
#include "heed/train/train_options.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

using Names = std::vector<std::string>;

ModelChoice chosen(const std::string& preset, const Names& arguments) {
  ModelChoice choice;
  Settings settings;
  declare(settings, choice);
  settings.assign("preset=" + preset);
  for (const std::string& argument : arguments) settings.assign(argument);
  return choice;
}

Json config_of(const std::string& preset, const Names& arguments) { return model_config(chosen(preset, arguments)); }

TensorMap inputs_for(const std::string& family, const Json& config) {
  const Tensor tokens = Tensor::from(std::vector<int64_t>{2, 3, 4, 5, 6, 7, 8, 9, 3, 2}, {2, 5}, kCpu);
  const Tensor mask = Tensor::from(std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, {2, 5}, kCpu);
  const Tensor labels = Tensor::from(std::vector<int64_t>{1, 0}, {2}, kCpu);
  if (family == "bert") return {{"input_ids", tokens}, {"attention_mask", mask}, {"labels", labels}};
  if (family != "vit") return {{"input_ids", tokens}, {"attention_mask", mask}, {"labels", tokens}};
  Rng rng(3);
  const int64_t side = config["image_size"].get<int64_t>();
  return {{"pixel_values", random_normal({2, 3, side, side}, 0, 1, rng, kCpu)}, {"labels", labels}};
}

// Builds a small model, and checks its loss and that all parameters have gradients. Returns config.json.
Json expect_sound(const Preset& preset, Names arguments) {
  for (const char* each : {"layers=1", "width=24", "heads=3"}) arguments.emplace_back(each);
  SCOPED_TRACE(preset.name + " " + arguments[0]);
  Json config = config_of(preset.name, arguments);
  if (preset.name == "vit-base") config["image_size"] = 64;
  const Model model = make_model(config);
  Rng rng(1);
  TensorMap out = model(inputs_for(preset.family, config), {.mode = training_with(rng)});
  EXPECT_TRUE(std::isfinite(out["loss"].item()));
  backward(out["loss"]);
  for (const Parameter& each : model.params().all()) EXPECT_TRUE(!each.options.learned || each.tensor.grad().defined()) << each.name;
  return config;
}

TEST(Presets, training_settings_exist) {
  for (const Preset& preset : presets()) {
    TrainOptions options;
    ModelChoice choice;
    int64_t pad = 0;
    bool flip = false;
    Settings settings;
    declare(settings, choice);
    declare(settings, options);
    settings.add("pad", pad, "", {.least = 0});
    settings.add("flip", flip, "");
    settings.assign("batch=7");
    apply_training_settings(preset, settings);
    EXPECT_EQ(options.batch, 7) << preset.name;
    for (const auto& [key, value] : preset.settings) {
      const std::string text = settings.text(key);
      EXPECT_TRUE(key == "batch" || text == value || std::stof(text) == std::stof(value)) << preset.name << " " << key;
    }
    EXPECT_EQ(flip, preset.family == "vit" || preset.family == "resnet");
  }
  EXPECT_EQ(preset_named("gaussian").config["num_attention_heads"], 9);
  expect_error<UsageError>([] { preset_named("vit-tinny"); }, "expected one of vit-tiny, vit-small, ");
  expect_error<UsageError>([] { preset_named("vit-tinny"); }, "did you mean 'vit-tiny'?");
  expect_error<UsageError>([] { chosen("bert", {}); }, "train: preset='bert', expected one of ");
}

TEST(Presets, have_the_published_sizes) {
  const auto millions = [](const std::string& preset, const Names& arguments) {
    return static_cast<double>(make_model(config_of(preset, arguments), {.names = {.shapes_only = true}}).params().count()) / 1e6;
  };
  EXPECT_NEAR(millions("vit-base", {"model.num_labels=1000"}), 86.57, 0.01);
  EXPECT_NEAR(millions("bert-base", {"model.vocab_size=30522"}), 109.48, 0.01);
  EXPECT_NEAR(millions("gpt2", {"model.vocab_size=50257"}), 124.44, 0.01);
  EXPECT_NEAR(millions("transformer-base", {"model.vocab_size=37000"}), 63.1, 0.1);
  EXPECT_NEAR(millions("vit-tiny", {}), 2.69, 0.01);
  EXPECT_NEAR(millions("resnet18", {}), 11.17, 0.01);
}

TEST(Presets, every_preset_runs_with_every_choice) {
  for (const Preset& preset : presets()) {
    if (architecture_of(Config(preset.config, "preset")).family->keys.heads.empty()) continue;  // no attention with such choices
    const bool vit = preset.family == "vit", bert = preset.family == "bert", gaussian = preset.name.starts_with("gaussian");
    Names positions = supported_choices(*architecture_of(Config(preset.config, "preset")).family, choices("positions"));
    if (vit) positions.emplace_back("learned,gaussian");
    positions.emplace_back("sinusoidal,rotary,alibi");
    for (const std::string& each : positions) {
      Names arguments{"position=" + each};
      if (gaussian && (each.starts_with("relative_content") || each.find("rotary,") != each.npos)) arguments.emplace_back("content=true");
      const Json config = expect_sound(preset, arguments);
      const bool own = each == "learned" || (each == "sinusoidal" && preset.family == "encoder-decoder") ||
                       (each == "rotary" && preset.config["model_type"] == "llama");
      EXPECT_FALSE(own && config.contains("heed") && config["heed"].contains("positions")) << preset.name;
    }
    Names others{"attention=hard",       "norm=before",
                 "norm=after",           "soft_cap=30",
                 "pattern=window:4",     "pattern=window:1:2:1",
                 "pattern=chunks:16",    "pattern=chunks:2:shifted,causal",
                 "pattern=dilated:2",    "pattern=causal",
                 "activation=relu",      "dropout=0.3",
                 "stochastic_depth=0.1", "model.initializer_range=0.01"};
    if (preset.family == "encoder-decoder") others.back() = "model.init_std=0.01";
    if (vit || bert)
      for (const char* each : {"pooling=gap", "pooling=map"}) others.emplace_back(each);
    if (vit)
      for (const char* each : {"pooling=flatten", "pattern=grid_window:1", "pattern=grid_window:1:2", "patch=8"}) others.emplace_back(each);
    for (const std::string& each : others) expect_sound(preset, {each});
    for (const char* features : {"elu", "relu", "random"}) {
      Names arguments{"attention=linear", std::string("features=") + features};
      if (gaussian) arguments.emplace_back("position=none");
      expect_sound(preset, arguments);
    }
    if (vit) expect_sound(preset, {"attention=channel", "position=learned", "project_values=true"});
    if (vit) expect_sound(preset, {"attention=pooled", "reduction=2", "position=learned"});
    expect_sound(preset, {"content=false", gaussian ? "position=gaussian" : "position=relative"});
    expect_sound(preset, {"position=relative", "reach=3"});
  }
}

TEST(Presets, settings_become_keys_of_config_json) {
  const Json marian = config_of("transformer-small", {"layers=2", "heads=8", "width=128", "dropout=0.2", "activation=gelu"});
  for (const std::string side : {"encoder", "decoder"}) {
    EXPECT_EQ(marian[side + "_layers"], 2);
    EXPECT_EQ(marian[side + "_attention_heads"], 8);
    EXPECT_EQ(marian[side + "_ffn_dim"], 512);  // scales with the width
  }
  EXPECT_EQ(marian["d_model"], 128);
  EXPECT_EQ(marian["dropout"].dump(), "0.2");
  EXPECT_FALSE(marian.contains("heed"));
  const Json gpt = config_of("gpt-mini", {"width=64", "feed_forward=100", "position=rotary,learned", "pattern=window:4:0"});
  EXPECT_EQ(gpt["n_embd"], 64);
  EXPECT_EQ(gpt["n_inner"], 100);
  EXPECT_EQ(gpt["heed"]["positions"], Json({"rotary", "learned"}));
  EXPECT_EQ(gpt["heed"]["pattern"], Json::parse(R"([{"kind": "window", "before": 4, "after": 0}])"));
  EXPECT_EQ(config_of("gpt-mini", {"position=t5:16:64,rope"})["heed"]["positions"],
            Json::parse(R"([{"kind": "bucketed", "buckets": 16, "far": 64}, "rotary"])"));
  EXPECT_EQ(config_of("gpt-mini", {"attention=kernel", "features=exp"})["heed"],
            Json::parse(R"({"attention": "linear", "features": "random"})"));
  EXPECT_EQ(config_of("vit-tiny", {"position=gaussian"})["heed"], Json::parse(R"({"positions": "gaussian", "pooling": "gap"})"));
  EXPECT_EQ(config_of("vit-tiny", {"position=gaussian", "pooling=map"})["heed"]["pooling"], "map");
  EXPECT_EQ(config_of("gpt-mini", {"stochastic_depth=0.1"})["heed"].dump(), R"({"stochastic_depth":0.1})");
  const Json gaussian = config_of("gaussian", {"position=learned", "width=200"});
  EXPECT_EQ(gaussian["head_dim"], 200);
  EXPECT_FALSE(gaussian["heed"].contains("content"));  // else all scores would be equal
  EXPECT_EQ(gaussian["heed"]["project_values"], false);
  EXPECT_EQ(config_of("gaussian", {})["heed"], preset_named("gaussian").config["heed"]);
  const Json open = config_of("bert-mini", {"model.heed.soft_cap=5", "soft_cap=7", "model.hidden_size=32", "width=64"});
  EXPECT_EQ(open["heed"]["soft_cap"], 5);
  EXPECT_EQ(open["hidden_size"], 32);
}

TEST(Presets, a_width_alone_selects_heads_that_divide_it) {
  const auto heads = [](const std::string& preset, const Names& arguments) { return heads_for(chosen(preset, arguments)); };
  EXPECT_EQ(heads("vit-tiny", {"width=32"}), 2);  // not 3
  EXPECT_EQ(heads("vit-tiny", {"width=48"}), 0);  // 3 divides it
  EXPECT_EQ(heads("vit-tiny", {}), 0);
  EXPECT_EQ(heads("vit-tiny", {"width=32", "heads=3"}), 0);  // set by the user, and rejected later
  EXPECT_EQ(heads("vit-base", {"width=100"}), 10);
  EXPECT_EQ(heads("bert-base", {"width=33"}), 11);
  EXPECT_EQ(heads("llama-mini", {"width=30"}), 3);  // head size 10
  EXPECT_EQ(heads("gpt-mini", {"width=34"}), 1);    // 2 heads would have the odd size 17
  EXPECT_EQ(heads("vit-tiny", {"width=31"}), 1);
  EXPECT_EQ(heads("resnet18", {}), 0);             // has no heads
  EXPECT_EQ(heads("gaussian", {"width=100"}), 0);  // heads are as wide as the model
}

TEST(Presets, invalid_choices_are_rejected) {
  const auto refused = [](const std::string& preset, const Names& arguments, const std::string& message) {
    expect_error<UsageError>([&] { config_of(preset, arguments); }, message);
  };
  refused("gpt-mini", {"position=gaussian"},
          "model: position='gaussian' is not supported by gpt-mini, expected none, learned, sinusoidal, rotary");
  refused("llama-mini", {"position=learned"},
          "position='learned' is not supported by llama-mini, expected none, sinusoidal, rotary, relative");
  refused("transformer-base", {"position=learned"}, "is not supported by transformer-base");
  refused("vit-tiny", {"position=none,rotary"}, "position=none, rotary, expected none alone or others");
  refused("vit-tiny", {"position=learned,sinusoidal"}, "expected at most one of learned, learned_2d, sinusoidal, sinusoidal_2d");
  refused("vit-tiny", {"position=gausian"}, "train: position='gausian', expected some of none, ");
  refused("vit-tiny", {"position=gaussian", "pooling=cls"}, "pooling=cls adds a class token, but these settings need a pure patch grid");
  refused("bert-mini", {"attention=channel"}, "attention='channel' is not supported by bert-mini, expected soft, hard, linear");
  refused("bert-mini", {"pooling=flatten"}, "pooling='flatten' is not supported by bert-mini, expected cls, gap, map");
  refused("gpt-mini", {"pooling=gap"}, "pooling='gap' is not supported by gpt-mini, expected none");
  refused("gpt-mini", {"patch=4"}, "patch=4 is not supported by gpt-mini, expected an image model");
  refused("gpt-mini", {"pattern=grid_window:2"},
          "pattern='grid_window' is not supported by gpt-mini, expected causal, window, chunks, dilated");
  refused("vit-tiny", {"pattern=windows:4"}, "train: pattern='windows:4', expected some of causal, window, ");
  for (const char* wrong : {"window", "dilated", "causal:1"})
    refused("vit-tiny", {std::string("pattern=") + wrong}, "expected causal, window:BEFORE:AFTER:GLOBALS, ");
  refused("vit-tiny", {"pattern=window:1:2:3:4"}, "found 4 parts, expected window:BEFORE:AFTER:GLOBALS");
  refused("vit-tiny", {"pattern=window:x"}, "model: pattern='window:x': before='x', expected a whole number");
  refused("vit-tiny", {"pattern=chunks:0"}, "size='0', expected a whole number of 1 or more");
  refused("vit-tiny", {"pattern=chunks:2:often"}, "shifted='often', expected shifted");
  refused("vit-tiny", {"reach=4"}, "reach=4, expected position=relative with it");
  refused("vit-tiny", {"features=relu"}, "features=relu, expected attention=linear with it");
  refused("vit-tiny", {"reduction=2"}, "reduction=2, expected attention=pooled with it");
  refused("vit-tiny", {"attention=kernel", "position=alibi"}, "position=alibi is added to scores, which attention=linear does not compute");
  refused("gaussian", {"attention=kernel"}, "position=gaussian is added to scores");
  refused("gaussian", {"attention=channel", "position=learned"}, "expected project_values=true");
  refused("vit-tiny", {"attention=kernel", "soft_cap=3"}, "soft_cap, expected attention=soft or hard with it");
  refused("vit-tiny", {"attention=pooled", "pattern=causal"}, "a pattern with attention=pooled");
  refused("vit-tiny", {"content=false"}, "content=false, expected one of relative, ");
  refused("gaussian", {"position=learned", "content=false"}, "content=false, expected one of relative, ");
  refused("vit-tiny", {"content=false", "position=rotary,relative"}, "position=rotary with content=false");
  refused("vit-tiny", {"heads=5"}, "width=192 does not divide into heads=5");
  refused("vit-tiny", {"model.n_embd=5"}, "model.NAME='n_embd' is not supported by vit-tiny");
  refused("vit-tiny", {"model.hiden_size=5"}, "unknown setting 'model.hiden_size'; did you mean 'model.hidden_size'?");
  refused("vit-tiny", {"model.heed=5"}, "model.heed=5, expected a key below it");
  refused("vit-tiny", {"model.heed.positions=gaussian", "model.heed.pooling=cls"}, "need a pure patch grid");
  expect_error<FileError>([] { make_model(config_of("vit-tiny", {"model.heed.attenion=soft"})); }, "heed.attenion is not known");
}

}  // namespace
}  // namespace heed::test
