// Checkpoints as people publish them: with leftovers of another head, without a pooler, without "architectures", with one channel.
#include <gtest/gtest.h>

#include "heed/io/image.h"
#include "heed/models/architecture.h"
#include "heed/models/embed.h"
#include "heed/models/image_processor.h"
#include "heed/models/text_model.h"
#include "heed/ops/ops.h"
#include "tests/models/fixture_copy.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

struct Loaded {
  Model model;
  std::vector<std::string> warnings;
};
Loaded loaded(const Path& folder, ModelOptions options = {}) {
  const auto warnings = std::make_shared<std::vector<std::string>>();
  options.names.warn = [warnings](const std::string& text) { warnings->push_back(text); };
  Model model = load(folder, options);
  return {std::move(model), *warnings};
}

TEST(Published, leftovers_of_another_head_are_listed_in_one_warning) {
  const FixtureCopy copy("bert-sentiment");
  EXPECT_TRUE(loaded(copy.path()).warnings.empty());
  copy.add({{"cls.seq_relationship.weight", Tensor::zeros({2, 4}, DType::f32, kCpu)},
            {"cls.seq_relationship.bias", Tensor::zeros({2}, DType::f32, kCpu)},
            {"vocab_projector.bias", Tensor::zeros({9}, DType::f32, kCpu)}});
  const Loaded found = loaded(copy.path());
  ASSERT_EQ(found.warnings.size(), 1U);
  EXPECT_NE(found.warnings[0].find("3 tensors that the model does not use"), std::string::npos) << found.warnings[0];
  for (const char* name : {"cls.seq_relationship.weight", "cls.seq_relationship.bias", "vocab_projector.bias"})
    EXPECT_NE(found.warnings[0].find(name), std::string::npos);
  expect_parity(copy.path());
}

TEST(Published, a_pooler_may_be_there_or_not) {
  const std::map<std::string, TensorMap> inputs{{"vit-model", {{"pixel_values", Tensor::zeros({1, 3, 16, 16}, DType::f32, kCpu)}}},
                                                {"roberta-model", {{"input_ids", Tensor::zeros({1, 5}, DType::i64, kCpu)}}}};
  for (const auto& [name, input] : inputs) {
    const FixtureCopy copy(name);
    EXPECT_TRUE(load(copy.path())(input).contains("pooler_output")) << name;
    copy.remove("pooler.");
    const Loaded without = loaded(copy.path());
    EXPECT_TRUE(without.warnings.empty()) << name;
    EXPECT_FALSE(without.model(input).contains("pooler_output")) << name;
  }
  const FixtureCopy classifier("vit-classify");  // a pooler that the classifier does not use
  classifier.add({{"vit.pooler.dense.weight", Tensor::zeros({48, 48}, DType::f32, kCpu)}});
  EXPECT_EQ(loaded(classifier.path()).warnings.size(), 1U);
  expect_parity(classifier.path());
}

// The files tell which head a checkpoint has.
TEST(Published, architectures_may_be_absent) {
  for (const auto& entry : std::filesystem::directory_iterator(fixture(""))) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const std::string name = entry.path().filename();
    const FixtureCopy copy(name);
    const std::string expected = load(copy.path()).architecture();
    copy.erase("architectures");
    const Loaded found = loaded(copy.path());
    // A causal model has the parameters of an encoder, and a token classifier those of a sequence classifier.
    const bool same_parameters = name == "bert-causal" || name == "modernbert-tokens";
    if (!same_parameters) {
      EXPECT_EQ(found.model.architecture(), expected) << name;
    }
    EXPECT_TRUE(found.warnings.empty()) << name;
  }
}

TEST(Published, what_the_task_lacks_is_an_error_or_initialized_for_training) {
  const FixtureCopy copy("bert-masked");
  copy.set("architectures", {"BertForSequenceClassification"});
  copy.refuses("missing: \"bert.pooler.dense.weight\", \"bert.pooler.dense.bias\", \"classifier.weight\", \"classifier.bias\"");
  const Loaded found = loaded(copy.path(), {.new_head = true});
  ASSERT_EQ(found.warnings.size(), 2U);
  EXPECT_NE(found.warnings[0].find("\"classifier.weight\", \"classifier.bias\"; they are initialized"), std::string::npos)
      << found.warnings[0];
  EXPECT_NE(found.warnings[1].find("cls.predictions"), std::string::npos) << found.warnings[1];
  copy.remove("encoder.layer.0.output.dense.weight");  // not a part of the head
  copy.refuses("1 missing: \"bert.encoder.layer.0.output.dense.weight\"", {.new_head = true});
}

TEST(Published, images_of_one_channel) {
  const Folder folder;
  const Json config{{"architectures", {"ViTForImageClassification"}},
                    {"model_type", "vit"},
                    {"image_size", 8},
                    {"patch_size", 4},
                    {"num_channels", 1},
                    {"hidden_size", 8},
                    {"num_attention_heads", 2},
                    {"num_hidden_layers", 1},
                    {"intermediate_size", 16}};
  save(make_model(config), folder.path());
  for (const Json& mean : std::vector<Json>{0.5, {0.5}, {0.5, 0.5, 0.5}}) {
    write_json(folder / "preprocessor_config.json", {{"size", {{"height", 8}, {"width", 8}}}, {"image_mean", mean}, {"image_std", mean}});
    const ImageProcessor processor(folder.path());
    Image image{.width = 8, .height = 8, .pixels = std::vector<uint8_t>(192, 51)};
    const Tensor grey = processor(image);
    ASSERT_EQ(grey.shape(), (Shape{1, 8, 8}));
    EXPECT_NEAR(grey.to_vector<float>()[0], -0.6, 1e-6);
    image.pixels[0] = 255, image.pixels[1] = image.pixels[2] = 0;  // red: 76 of 255, as in Pillow
    EXPECT_NEAR(processor(image).to_vector<float>()[0], (76 / 255.0 - 0.5) / 0.5, 1e-6);
    const Model model = load(folder.path());
    check_image_size(model, folder.path(), grey);
    EXPECT_EQ(model({{"pixel_values", processor(std::span(&image, 1))}}).at("logits").shape(), (Shape{1, 2}));
  }
  write_json(folder / "preprocessor_config.json", {{"image_mean", {0.1, 0.2, 0.3}}});
  expect_refused([&] { ImageProcessor processor(folder.path()); }, "image_mean is");
}

// transformers leaves keys with their default out of nested configs, and a null is not always an absent key.
TEST(Published, missing_keys_have_the_defaults_of_transformers) {
  const auto shape = [](const Json& config, const std::string& name) {
    const Model model = make_model(config, {.names = {.shapes_only = true}});
    for (const Parameter& each : model.params().all())
      if (each.name == name) return each.tensor.shape();
    return Shape{};
  };
  const Json narrow{{"hidden_size", 16}, {"num_attention_heads", 2}, {"num_hidden_layers", 1}};
  const Json clip{{"architectures", {"CLIPModel"}}, {"text_config", narrow}, {"vision_config", narrow}};
  EXPECT_EQ(shape(clip, "text_model.encoder.layers.0.mlp.fc1.weight"), (Shape{2048, 16}));
  EXPECT_EQ(shape(clip, "vision_model.encoder.layers.0.mlp.fc1.weight"), (Shape{3072, 16}));
  for (const auto& [name, side] : {std::pair("Dinov2Model", 14), {"Dinov2WithRegistersModel", 16}, {"ViTModel", 16}}) {
    Json vision = narrow;
    vision["architectures"] = {name};
    EXPECT_EQ(shape(vision, "embeddings.patch_embeddings.projection.weight"), (Shape{16, 3, side, side})) << name;
    EXPECT_EQ(shape(vision, "embeddings.position_embeddings"), (Shape{1, 1 + (224 / side) * (224 / side), 16})) << name;
    const Model model = make_model(vision, {.names = {.shapes_only = true}});
    EXPECT_EQ(patch_sides(model), (std::array<int64_t, 2>{side, side})) << name;
  }
  EXPECT_EQ(patch_sides(make_model(clip, {.names = {.shapes_only = true}})), (std::array<int64_t, 2>{32, 32}));
  Json json = narrow;
  json["architectures"] = {"XLMRobertaModel"};
  EXPECT_EQ(shape(json, "embeddings.word_embeddings.weight"), (Shape{30522, 16}));
  json["architectures"] = {"RobertaModel"};
  EXPECT_EQ(shape(json, "embeddings.word_embeddings.weight"), (Shape{50265, 16}));
  json["architectures"] = {"MistralModel"};
  json.update({{"num_attention_heads", 3}, {"num_key_value_heads", nullptr}, {"head_dim", 4}});  // as many as heads; 3 x 4 is not 16
  EXPECT_EQ(shape(json, "layers.0.self_attn.k_proj.weight"), (Shape{12, 16}));
  json.erase("head_dim");
  expect_refused([&] { make_model(json, {.names = {.shapes_only = true}}); }, "num_attention_heads is");
}

// In older files of CLIP, text_config_dict replaces text_config, and keys that it does not have get their defaults.
TEST(Published, older_configs_of_clip) {
  const Json narrow{{"hidden_size", 16}, {"num_attention_heads", 2}, {"num_hidden_layers", 1}};
  Json wide = narrow, images = narrow;
  wide.update({{"hidden_size", 32}, {"intermediate_size", 40}, {"max_position_embeddings", 12}});
  images.update({{"image_size", 48}, {"patch_size", 16}});
  Json config{{"architectures", {"CLIPModel"}}, {"text_config", wide}, {"vision_config", wide}};
  const auto shape = [&](const std::string& name) {
    const Model model = make_model(config, {.names = {.shapes_only = true}});
    for (const Parameter& each : model.params().all())
      if (each.name == name) return each.tensor.shape();
    return Shape{};
  };
  const std::string layer = "text_model.encoder.layers.0.mlp.fc1.weight", positions = "vision_model.embeddings.position_embedding.weight";
  EXPECT_EQ(shape(layer), (Shape{40, 32}));
  config["text_config_dict"] = config["vision_config_dict"] = nullptr;
  EXPECT_EQ(shape(layer), (Shape{40, 32}));
  config["text_config_dict"] = narrow;
  config["vision_config_dict"] = images;
  EXPECT_EQ(shape(layer), (Shape{2048, 16}));
  EXPECT_EQ(shape(positions), (Shape{1 + 3 * 3, 16}));
  const Model model = make_model(config, {.names = {.shapes_only = true}});
  EXPECT_EQ(max_tokens(model), 77);
  EXPECT_EQ(image_shape(model), (std::array<int64_t, 3>{3, 48, 48}));
  config.erase("text_config");
  EXPECT_EQ(shape(layer), (Shape{2048, 16}));
  config["text_config"]["heed"] = {{"positions", "none"}};  // a key that transformers does not have is not replaced
  EXPECT_EQ(shape("text_model.embeddings.position_embedding.weight"), Shape{});
}

TEST(Published, a_padding_token_of_minus_one_is_none) {
  Json json{{"architectures", {"GPT2ForSequenceClassification"}}, {"n_embd", 8}, {"n_head", 2}, {"n_layer", 1}, {"vocab_size", 9}};
  const Tensor tokens = Tensor::from(std::vector<int64_t>{3, 0, 5}, {1, 3}, kCpu);
  const std::vector<float> expected = make_model(json)({{"input_ids", tokens}}).at("logits").to_vector<float>();
  json["pad_token_id"] = -1;
  EXPECT_EQ(make_model(json)({{"input_ids", tokens}}).at("logits").to_vector<float>(), expected);
}

// One answer to how many tokens a model reads.
TEST(Traits, positions) {
  const auto limit = [](const Json& config) { return max_tokens(make_model(config, {.names = {.shapes_only = true}})); };
  const Json llama{{"architectures", {"LlamaForCausalLM"}}, {"hidden_size", 8}, {"num_attention_heads", 2}, {"num_hidden_layers", 1}};
  EXPECT_EQ(limit(llama), 2048);
  Json bert{{"architectures", {"BertForSequenceClassification"}}, {"hidden_size", 8}, {"num_attention_heads", 2}, {"num_hidden_layers", 1}};
  EXPECT_EQ(limit(bert), 512);
  for (const char* any : {"alibi", "none", "relative"}) {
    bert["heed"] = {{"positions", any}};
    EXPECT_EQ(limit(bert), kAnyTokens) << any;
    const Model model = make_model(bert);
    const Tensor tokens = Tensor::zeros({1, 600}, DType::i64, kCpu);
    EXPECT_EQ(model({{"input_ids", tokens}}).at("logits").shape(), (Shape{1, 2})) << any;
  }
  for (const char* ends : {"learned", "sinusoidal", "rotary"}) {
    bert["heed"] = {{"positions", ends}};
    EXPECT_EQ(limit(bert), 512) << ends;
    const Model model = make_model(bert);
    expect_error([&] { model({{"input_ids", Tensor::zeros({1, 513}, DType::i64, kCpu)}}); }, "512");
  }
  bert["heed"] = {{"positions", {"alibi", "learned"}}};
  EXPECT_EQ(limit(bert), 512);
}

// Every architecture has the traits that its task needs.
TEST(Traits, are_complete) {
  for (const Architecture& each : architectures()) {
    const Family& family = *each.family;
    EXPECT_FALSE(family.model_type.empty()) << each.name;
    EXPECT_TRUE(family.pixels || family.tokens) << each.name;
    EXPECT_EQ(family.tokens, !family.word_tables.empty()) << each.name;
    EXPECT_TRUE(each.bare() || !family.keys.all().empty()) << each.name;
    EXPECT_EQ(&architecture_of(Config({{"architectures", {each.name}}}, "held")), &each);
    const Architecture* features = for_task(each, ModelTask::features);
    EXPECT_TRUE(!features || features->family == each.family) << each.name;
  }
}

TEST(Traits, of_fixtures) {
  for (const auto& entry : std::filesystem::directory_iterator(fixture(""))) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    SCOPED_TRACE(entry.path().string());
    const Model model = load(entry.path());
    const Config config(model.config(), "config.json");
    EXPECT_EQ(model.family().pixels, model.takes("pixel_values"));
    EXPECT_EQ(model.family().tokens, model.takes("input_ids"));
    EXPECT_EQ(word_table(model).defined(), model.family().tokens);
    if (model.family().tokens) {
      const Config texts = config.has("text_config") ? config.below("text_config") : config;  // of CLIP
      EXPECT_EQ(word_table(model).size(0), texts.size("vocab_size", 0));
    }
    const ModelTask task = model.traits().task;
    EXPECT_EQ(model.generates(), task == ModelTask::causal_lm || task == ModelTask::seq2seq_lm || task == ModelTask::image_captioning);
    EXPECT_EQ(model.config().value("model_type", ""), model.family().model_type);
  }
}

}  // namespace
}  // namespace heed::test
