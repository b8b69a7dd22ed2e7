// The cost of models against numbers computed by hand, and attention maps against simple references.
#include "heed/models/inspect.h"

#include <gtest/gtest.h>

#include <numeric>

#include "heed/attention/probabilities.h"
#include "heed/core/memory.h"
#include "heed/models/cost.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

ModelCost cost_of_config(const Json& config, InputSize size = {}) {
  return cost_of(make_model(config, {.names = {.shapes_only = true}}), size);
}

Json architecture(const char* name, const Json& more = Json::object()) {
  Json out{{"architectures", {name}}};
  out.update(more);
  return out;
}

const ModelPart& part(const ModelCost& cost, const std::string& name) {
  const auto found = std::find_if(cost.parts.begin(), cost.parts.end(), [&](const ModelPart& each) { return each.name == name; });
  check(found != cost.parts.end(), "there is no part ", name);
  return *found;
}

// Dosovitskiy et al. 2021: 86 M parameters; 17.6 G multiply-adds are published for 224 x 224.
TEST(Cost, vit_base) {
  const ModelCost cost = cost_of_config(architecture("ViTForImageClassification", {{"num_labels", 1000}}));
  const int64_t N = 197, D = 768, W = 3072;
  const int64_t layer = N * (4 * D * D + 2 * D * W) + 2 * N * N * D;
  EXPECT_EQ(cost.size.tokens, N);
  EXPECT_EQ(cost.total.count, 86'567'656);
  EXPECT_EQ(cost.total.bytes, 4 * 86'567'656);
  EXPECT_EQ(cost.total.multiply_adds, 12 * layer + 196 * 3 * 16 * 16 * D + 1000 * D);
  EXPECT_EQ(cost.total.multiply_adds, 17'563'828'224);
  // Of a layer: q, k, v, heads, output, two norms, down: 8 D; up: W. Besides: patches, the last norm, the head.
  EXPECT_EQ(cost.total.activation_bytes, 4 * (12 * N * (8 * D + W) + 196 * D + N * D + 1000));
  EXPECT_EQ(part(cost, "vit.encoder.layer.3.attention.(attend)").multiply_adds, 2 * N * N * D);
  EXPECT_EQ(cost.cache_bytes, 0);
}

TEST(Cost, deit_has_two_tokens_more_and_two_heads) {
  const ModelCost cost = cost_of_config(architecture("DeiTForImageClassificationWithTeacher", {{"num_labels", 10}}));
  EXPECT_EQ(cost.size.tokens, 198);
  EXPECT_EQ(part(cost, "distillation_classifier").multiply_adds, 7680);
  EXPECT_EQ(part(cost, "deit.encoder.layer.0.output.dense").multiply_adds, 198 * 768 * 3072);
}

TEST(Cost, bert_base) {
  const ModelCost cost = cost_of_config(architecture("BertModel"), {.batch = 8, .tokens = 128});
  const int64_t layer = 128 * (4 * 768 * 768 + 2 * 768 * 3072) + 2 * 128 * 128 * 768;
  EXPECT_EQ(cost.total.count, 109'482'240);
  EXPECT_EQ(cost.total.multiply_adds, 8 * (12 * layer + 768 * 768));
  EXPECT_NEAR(static_cast<double>(cost.total.multiply_adds) / 8, 11.2e9, 0.05e9);
  const ModelCost masked = cost_of_config(architecture("BertForMaskedLM"), {.tokens = 10});
  EXPECT_EQ(part(masked, "cls.predictions.decoder.(tied)").multiply_adds, int64_t{10} * 30522 * 768);
  EXPECT_EQ(part(cost_of_config(architecture("BertForTokenClassification"), {.tokens = 10}), "classifier").multiply_adds, 10 * 2 * 768);
  EXPECT_EQ(part(cost_of_config(architecture("BertForSequenceClassification"), {.tokens = 10}), "classifier").multiply_adds, 2 * 768);
}

TEST(Cost, gpt2) {
  const ModelCost cost = cost_of_config(architecture("GPT2LMHeadModel"), {.tokens = 1024});
  const int64_t N = 1024, D = 768, pairs = N * (N + 1) / 2;
  EXPECT_EQ(cost.total.count, 124'439'808);
  EXPECT_EQ(cost.total.multiply_adds, 12 * (N * 12 * D * D + 2 * pairs * D) + N * 50257 * D);
  EXPECT_EQ(cost.cache_bytes, 12 * 2 * D * 4);
  EXPECT_EQ(part(cost, "lm_head.(tied)").count, 0);
  expect_error<UsageError>([] { cost_of_config(architecture("GPT2LMHeadModel"), {.tokens = 1025}); },
                           "cost: 1025 tokens, the model has 1024 positions");
}

TEST(Cost, llama_shares_keys) {
  const ModelCost cost = cost_of_config(architecture("LlamaForCausalLM", {{"hidden_size", 64},
                                                                          {"num_attention_heads", 8},
                                                                          {"num_key_value_heads", 2},
                                                                          {"intermediate_size", 160},
                                                                          {"num_hidden_layers", 3},
                                                                          {"vocab_size", 100}}),
                                        {.tokens = 7});
  EXPECT_EQ(cost.total.multiply_adds, 3 * (7 * (2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 160) + 2 * 28 * 64) + 7 * 100 * 64);
  EXPECT_EQ(cost.cache_bytes, 3 * 2 * 16 * 4);
}

TEST(Cost, marian_has_two_lengths) {
  const ModelCost cost = cost_of_config(architecture("MarianMTModel", {{"d_model", 32},
                                                                       {"vocab_size", 50},
                                                                       {"encoder_layers", 2},
                                                                       {"decoder_layers", 1},
                                                                       {"encoder_attention_heads", 4},
                                                                       {"decoder_attention_heads", 4},
                                                                       {"encoder_ffn_dim", 64},
                                                                       {"decoder_ffn_dim", 96}}),
                                        {.tokens = 5, .target = 3});
  const int64_t M = 5, N = 3, D = 32;
  const int64_t encoder = M * (4 * D * D + 2 * D * 64) + 2 * M * M * D;
  const int64_t decoder = N * 4 * D * D + 2 * 6 * D + (2 * N + 2 * M) * D * D + 2 * N * M * D + N * 2 * D * 96;
  EXPECT_EQ(cost.total.multiply_adds, 2 * encoder + decoder + N * 50 * D);
  EXPECT_EQ(cost.cache_bytes, 2 * D * 4);
  EXPECT_EQ(cost.memory_bytes, 2 * D * 4);
}

TEST(Cost, variants) {
  const auto vit = [](const Json& own) {
    return cost_of_config(
        architecture("ViTForImageClassification",
                     {{"image_size", 256}, {"hidden_size", 512}, {"num_attention_heads", 1}, {"num_hidden_layers", 1}, {"heed", own}}));
  };
  const auto attend = [&](const Json& own) { return part(vit(own), "vit.encoder.layer.0.attention.(attend)").multiply_adds; };
  EXPECT_EQ(attend({{"pooling", "gap"}}), 67'108'864);  // 256 tokens of 512: patches against channels
  EXPECT_EQ(attend({{"pooling", "gap"}, {"attention", "channel"}}), 134'217'728);
  EXPECT_EQ(attend({{"pooling", "gap"}, {"attention", "pooled"}}), 67'108'864 / 4);
  EXPECT_EQ(attend({{"pooling", "gap"}, {"attention", "linear"}}), 2 * 256 * 512 * 512 + 256 * 512);
  EXPECT_EQ(attend({{"pooling", "gap"}, {"positions", "gaussian"}, {"content", false}}), 256 * 512 * (16 + 16));  // along rows and columns
  EXPECT_EQ(attend({{"pattern", {{"kind", "chunks"}, {"size", 257}}}}), 2 * 257 * 257 * 512);
  const ModelCost pooled = vit({{"pooling", "map"}});
  EXPECT_EQ(part(pooled, "vit.pooling.attention.(attend)").multiply_adds, 2 * 256 * 512);
  EXPECT_EQ(part(pooled, "vit.pooling.attention.key").multiply_adds, 256 * 512 * 512);
  EXPECT_EQ(part(pooled, "vit.pooling.attention.query").multiply_adds, 512 * 512);
}

// With equal scores, every visible key has a weight above 0.
TEST(Cost, visible_pairs_of_patterns_are_those_of_the_terms) {
  const auto by_terms = [](int64_t N, const std::vector<Term>& terms) {
    const Tensor none = Tensor::zeros({1, 1, N, 1}, kCpu);
    const std::vector<float> map = attention_probabilities(none, none, {.terms = terms}).to_vector<float>();
    return std::count_if(map.begin(), map.end(), [](float weight) { return weight > 0; });
  };
  const int64_t N = 35, D = 4;
  const Json sizes{{"hidden_size", D}, {"num_attention_heads", 1}, {"num_hidden_layers", 2}, {"intermediate_size", D}};
  const auto pairs = [&](Json config, const Json& pattern, int64_t layer) {
    const std::string base = config.contains("image_size") ? "vit." : "bert.";
    config.update(sizes);
    if (!pattern.is_null()) config["heed"]["pattern"] = pattern;
    const ModelCost cost = cost_of_config(config, {.tokens = base == "bert." ? N : 0});
    return part(cost, base + "encoder.layer." + std::to_string(layer) + ".attention.(attend)").multiply_adds / (2 * D);
  };
  const Json text = architecture("BertForTokenClassification"), causal = architecture("BertForTokenClassification", {{"is_decoder", true}});
  const Json image = architecture("ViTForImageClassification", {{"image_size", {5, 7}}, {"patch_size", 1}, {"heed", {{"pooling", "gap"}}}});
  EXPECT_EQ(pairs(causal, Json(), 0), by_terms(N, {Causal{}}));
  EXPECT_EQ(pairs(text, {{"kind", "window"}, {"before", 3}, {"after", 1}, {"globals", 2}}, 0),
            by_terms(N, {Window{.before = 3, .after = 1, .globals = 2}}));
  EXPECT_EQ(pairs(causal, {{"kind", "window"}, {"before", 3}}, 0), by_terms(N, {Causal{}, Window{.before = 3, .after = 3}}));
  const Json chunks{{"kind", "chunks"}, {"size", 8}, {"shifted", true}};
  EXPECT_EQ(pairs(text, chunks, 0), by_terms(N, {Chunks{.size = 8}}));
  EXPECT_EQ(pairs(text, chunks, 1), by_terms(N, {Chunks{.size = 8, .shift = 4}}));
  EXPECT_EQ(pairs(text, {{"kind", "dilated"}, {"step", 3}}, 0), by_terms(N, {Dilated{3}}));
  EXPECT_EQ(pairs(image, {{"kind", "grid_window"}, {"rows", 1}, {"columns", 2}}, 0),
            by_terms(N, {GridWindow{.rows = 1, .columns = 2, .width = 7}}));
  EXPECT_EQ(pairs(text, Json::array({{{"kind", "causal"}}, {{"kind", "dilated"}, {"step", 2}}}), 0), by_terms(N, {Causal{}, Dilated{2}}));
}

TEST(Cost, counts_what_checkpoints_hold_and_takes_no_memory_for_it) {
  for (const auto& entry : std::filesystem::directory_iterator(fixture(""))) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    SCOPED_TRACE(entry.path().string());
    const Model outline = load(entry.path(), {.names = {.shapes_only = true}}), whole = load(entry.path());
    const ModelCost cost = cost_of(outline, {}), again = cost_of(whole, {});
    int64_t numbers = 0, bytes = 0;
    for (const Parameter& parameter : whole.params().all()) {
      numbers += parameter.tensor.count();
      bytes += parameter.tensor.count() * static_cast<int64_t>(bytes_of(parameter.stored));
    }
    EXPECT_EQ(cost.total.count, numbers);
    EXPECT_EQ(cost.total.bytes, bytes);
    EXPECT_EQ(cost.total.multiply_adds, again.total.multiply_adds);
    EXPECT_GT(cost.total.multiply_adds, 0);
    EXPECT_GT(cost.total.activation_bytes, 0);
  }
  const Folder half;
  save(load(fixture("gpt2-lm")), half.path(), {.dtype = DType::bf16});
  const ModelCost halved = cost_of(load(half.path(), {.names = {.shapes_only = true}}));
  EXPECT_EQ(halved.total.bytes, 2 * halved.total.count);
  const int64_t before = memory_use(kCpu).peak;
  const ModelCost large = cost_of_config(architecture("LlamaForCausalLM", {{"max_position_embeddings", 64}}));
  EXPECT_EQ(large.total.count, 6'738'415'616);
  EXPECT_LT(memory_use(kCpu).peak - before, 10'000'000);
}

TensorMap text_inputs() { return {{"input_ids", Tensor::from(std::vector<int64_t>{5, 9, 2, 33, 7}, {1, 5}, kCpu)}}; }

TEST(Maps, are_the_outputs_of_the_model) {
  const TensorMap out = load(fixture("bert-model"))(text_inputs(), {.attentions = true});
  const AttentionMaps all = maps_in(out, "attentions.", "attention", {});
  const AttentionMaps some = maps_in(out, "attentions.", "attention", {.layers = {1}, .heads = {2, 0}});
  EXPECT_EQ(all.layers.size(), static_cast<size_t>(all.all_layers));
  EXPECT_EQ(some.N, 5);
  const std::vector<float> plain = out.at("attentions.1").to_vector<float>();
  for (int64_t i = 0; i < 25; ++i) {
    EXPECT_EQ(some.map(0, 0)[static_cast<size_t>(i)], plain[static_cast<size_t>(2 * 25 + i)]);
    EXPECT_EQ(some.map(0, 1)[static_cast<size_t>(i)], plain[static_cast<size_t>(i)]);
    EXPECT_NEAR(some.mean(0)[static_cast<size_t>(i)], (plain[static_cast<size_t>(50 + i)] + plain[static_cast<size_t>(i)]) / 2, 1e-7);
  }
  for (size_t row = 0; row < all.weights.size(); row += 5)
    EXPECT_NEAR(std::accumulate(all.weights.begin() + static_cast<int64_t>(row), all.weights.begin() + static_cast<int64_t>(row) + 5, 0.0),
                1, 1e-5);
  expect_error<UsageError>([&] { maps_in(out, "attentions.", "attention", {.layers = {2}}); }, "inspect: layer 2, expected 0 to 1");
  expect_error<UsageError>([&] { maps_in(out, "attentions.", "attention", {.heads = {3}}); }, "inspect: head 3, expected 0 to 2");
  EXPECT_TRUE(maps_in(out, "attentions.", "attention", {.layers = {2}}, true).layers.empty());
  expect_error([] { maps_in({}, "attentions.", "attention", {}); }, "the model has no output \"attentions.0\"");
}

TEST(Maps, rollout_is_the_product_of_halves) {
  const TensorMap out = load(fixture("bert-model"))(text_inputs(), {.attentions = true});
  const int64_t N = 5;
  std::vector<double> expected(25);
  for (int64_t i = 0; i < N; ++i) expected[static_cast<size_t>(i * N + i)] = 1;
  for (const char* name : {"attentions.0", "attentions.1"}) {
    const std::vector<float> maps = out.at(name).to_vector<float>();
    std::vector<double> next(25);
    for (int64_t i = 0; i < N; ++i)
      for (int64_t k = 0; k < N; ++k) {
        double weight = i == k ? 0.5 : 0;
        for (int64_t h = 0; h < 3; ++h) weight += 0.5 * maps[static_cast<size_t>((h * N + i) * N + k)] / 3;
        for (int64_t j = 0; j < N; ++j) next[static_cast<size_t>(i * N + j)] += weight * expected[static_cast<size_t>(k * N + j)];
      }
    expected = next;
  }
  const std::vector<float> found = rollout(out, "attentions.");
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6);
  for (size_t row = 0; row < 25; row += 5)
    EXPECT_NEAR(std::accumulate(found.begin() + static_cast<int64_t>(row), found.begin() + static_cast<int64_t>(row) + 5, 0.0), 1, 1e-5);
}

}  // namespace
}  // namespace heed::test
