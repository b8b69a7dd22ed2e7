// Heads removed from models, compared with the whole model with the outputs of those heads set to 0.
#include "heed/models/prune.h"

#include <gtest/gtest.h>

#include "heed/attention/edit.h"
#include "heed/core/autograd.h"
#include "heed/core/copy.h"
#include "heed/models/architecture.h"
#include "tests/models/fixtures.h"

namespace heed::test {
namespace {

Json small_config(const std::string& architecture, const Json& more) {
  Json config{{"architectures", {architecture}}, {"num_labels", 3}};
  config.update(more);
  return config;
}

const Json kSmallVision{{"hidden_size", 24},       {"num_attention_heads", 4}, {"num_hidden_layers", 2},
                        {"intermediate_size", 16}, {"image_size", 16},         {"patch_size", 4}};

TensorMap small_inputs(const Model& model) {
  Rng rng(3);
  if (model.family().pixels) return {{"pixel_values", random_normal({2, 3, 16, 16}, 0, 1, rng, kCpu)}};
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 14; ++i) ids.push_back(i * 5 % 23);
  return {{"input_ids", Tensor::from(ids, {2, 7}, kCpu)}};
}

void expect_same_outputs(const Model& whole, const std::set<std::pair<int64_t, int64_t>>& off, const Model& pruned) {
  const NoGrad no_grad;
  const TensorMap inputs = small_inputs(whole);
  std::vector<float> expected;
  {
    const AttentionEdit edit({.off = off});
    expected = whole(inputs).at("logits").to_vector<float>();
  }
  const std::vector<float> found = pruned(inputs).at("logits").to_vector<float>();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-5) << whole.architecture();
}

class PrunedHeads : public testing::TestWithParam<Json> {};

TEST_P(PrunedHeads, compute_what_the_others_compute) {
  const Model whole = make_model(GetParam());
  for (const Parameter& each : whole.params().all()) {  // biases and positions too
    Rng rng(each.name.size());
    copy_into(random_normal(each.tensor.shape(), 0, 0.4f, rng, kCpu), each.tensor.detach());
  }
  const std::vector<LayerHeads> before = prunable_heads(whole);
  ASSERT_EQ(before.size(), 2u);
  EXPECT_EQ(before[0].heads, 4);
  const Model fewer = without_heads(whole, {{0, {1}}, {1, {0, 3}}});
  EXPECT_EQ(prunable_heads(fewer)[0].heads, 3);
  EXPECT_EQ(prunable_heads(fewer)[1].heads, 2);
  EXPECT_LT(fewer.params().count(), whole.params().count());
  expect_same_outputs(whole, {{0, 1}, {1, 0}, {1, 3}}, fewer);
  // Heads of a smaller model are numbered anew: its head 1 of layer 0 was head 2.
  const Model fewest = without_heads(fewer, {{0, {1}}});
  EXPECT_EQ(fewest.config()["heed"]["pruned_heads"], (Json{{"0", {1, 2}}, {"1", {0, 3}}}));
  expect_same_outputs(whole, {{0, 1}, {0, 2}, {1, 0}, {1, 3}}, fewest);
  const Folder folder;
  save(fewest, folder / "model");
  expect_same_outputs(fewest, {}, load(folder / "model"));
}

Json with_heed(Json config, const Json& heed) {
  config["heed"] = heed;
  return config;
}

INSTANTIATE_TEST_SUITE_P(
    Models, PrunedHeads,
    testing::Values(small_config("ViTForImageClassification", kSmallVision),
                    with_heed(small_config("ViTForImageClassification", kSmallVision),
                              {{"positions", "gaussian"}, {"content", false}, {"project_values", false}, {"pooling", "gap"}}),
                    with_heed(small_config("ViTForImageClassification", kSmallVision), {{"positions", "relative_2d"}, {"pooling", "map"}}),
                    small_config("BertForSequenceClassification", {{"hidden_size", 24},
                                                                   {"num_attention_heads", 4},
                                                                   {"num_hidden_layers", 2},
                                                                   {"intermediate_size", 16},
                                                                   {"vocab_size", 23},
                                                                   {"max_position_embeddings", 8}}),
                    small_config("GPT2LMHeadModel",
                                 {{"n_embd", 24}, {"n_head", 4}, {"n_layer", 2}, {"vocab_size", 23}, {"n_positions", 8}}),
                    small_config("LlamaForCausalLM", {{"hidden_size", 24},
                                                      {"num_attention_heads", 4},
                                                      {"num_hidden_layers", 2},
                                                      {"intermediate_size", 16},
                                                      {"vocab_size", 23},
                                                      {"max_position_embeddings", 8}})));

// The others have heads that share keys, several stacks of layers, or no attention.
TEST(PrunedHeads, of_every_architecture_with_one_stack) {
  const NoGrad no_grad;
  std::set<std::string> families;
  for (const std::string& name : fixtures_with("io.safetensors")) {
    const Model whole = load(kFixtures / name);
    try {
      prunable_heads(whole);
    } catch (const FileError&) {
      continue;
    }
    families.insert(whole.family().model_type);
    const TensorMap inputs = inputs_in(Safetensors::open(kFixtures / name / "io.safetensors"));
    const TensorMap found = without_heads(whole, {{0, {1}}})(inputs);
    const AttentionEdit edit({.off = {{0, 1}}});
    for (const auto& [output, tensor] : whole(inputs)) {
      const std::vector<float> expected = tensor.to_vector<float>(), fewer = found.at(output).to_vector<float>();
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(fewer[i], expected[i], 2e-5) << name << " " << output;
    }
  }
  EXPECT_EQ(families, (std::set<std::string>{"bert", "deit", "dinov2", "dinov2_with_registers", "distilbert", "gpt2", "llama", "mistral",
                                             "modernbert", "roberta", "vit", "xlm-roberta"}));
}

std::string prune_error(const Json& config, const std::map<int64_t, std::vector<int64_t>>& heads) {
  try {
    without_heads(make_model(config), heads);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PrunedHeads, others_are_refused) {
  const Json vision = small_config("ViTForImageClassification", kSmallVision);
  EXPECT_NE(prune_error(vision, {{0, {0, 1, 2, 3}}}).find("one or more that stay"), std::string::npos);
  EXPECT_NE(prune_error(vision, {{2, {0}}}).find("the model has 2"), std::string::npos);
  EXPECT_NE(prune_error(vision, {{0, {4}}}).find("expected 0 to 3"), std::string::npos);
  EXPECT_NE(prune_error(with_heed(vision, {{"attention", "linear"}}), {{0, {0}}}).find("no softmax attention"), std::string::npos);
  EXPECT_NE(prune_error(with_heed(vision, {{"pruned_heads", {{"0", {3, 1}}}}}), {}).find("ascending order"), std::string::npos);
  const Json shared = small_config("LlamaForCausalLM", {{"hidden_size", 24},
                                                        {"num_attention_heads", 4},
                                                        {"num_key_value_heads", 2},
                                                        {"num_hidden_layers", 1},
                                                        {"intermediate_size", 16},
                                                        {"vocab_size", 23}});
  EXPECT_NE(prune_error(shared, {{0, {0}}}).find("share 2 keys"), std::string::npos) << prune_error(shared, {{0, {0}}});
}

}  // namespace
}  // namespace heed::test
