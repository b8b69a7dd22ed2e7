// The "heed" keys of config.json: every variant is built, trained, saved and loaded; some properties are tested.
#include <gtest/gtest.h>

#include "heed/models/choices.h"
#include "heed/models/generate.h"
#include "heed/models/model.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

Json vision(const Json& own) {
  return {{"architectures", {"ViTForImageClassification"}},
          {"hidden_size", 12},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"intermediate_size", 20},
          {"image_size", {8, 12}},
          {"patch_size", 2},
          {"num_labels", 3},
          {"heed", own}};
}
Json text(const char* architecture, const Json& own) {
  return {{"architectures", {architecture}},
          {"vocab_size", 30},
          {"hidden_size", 12},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"intermediate_size", 20},
          {"max_position_embeddings", 16},
          {"n_embd", 12},
          {"n_layer", 2},
          {"n_head", 2},
          {"n_positions", 16},
          {"dim", 12},
          {"n_layers", 2},
          {"n_heads", 2},
          {"hidden_dim", 20},
          {"d_model", 12},
          {"encoder_layers", 1},
          {"decoder_layers", 2},
          {"encoder_attention_heads", 2},
          {"decoder_attention_heads", 2},
          {"encoder_ffn_dim", 20},
          {"decoder_ffn_dim", 20},
          {"pad_token_id", 0},
          {"decoder_start_token_id", 0},
          {"tie_word_embeddings", true},
          {"heed", own}};
}

Tensor tokens(int64_t B, int64_t N) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < B * N; ++i) out.push_back((7 * i * i + 3 * i) % 30);
  return Tensor::from(out, {B, N}, kCpu);
}
TensorMap images() {
  Rng rng(3);
  return {{"pixel_values", random_normal({2, 3, 8, 12}, 0, 1, rng, kCpu)}, {"labels", Tensor::from(std::vector<int64_t>{2, 0}, {2}, kCpu)}};
}
TensorMap sentences(const std::string& architecture) {
  TensorMap out{{"input_ids", tokens(2, 9)}, {"labels", tokens(2, 9)}};
  if (architecture.find("Sequence") != std::string::npos) out["labels"] = Tensor::from(std::vector<int64_t>{1, 0}, {2}, kCpu);
  return out;
}

// Every parameter gets a gradient; the model is the same after saving and loading.
void expect_sound(const Json& config, const TensorMap& inputs) {
  SCOPED_TRACE(config["heed"].dump());
  const Model model = make_model(config);
  Rng rng(1);
  TensorMap out = model(inputs, {.mode = training_with(rng)});
  backward(out["loss"]);
  for (const Parameter& each : model.params().all()) EXPECT_TRUE(!each.options.learned || each.tensor.grad().defined()) << each.name;
  const Folder folder;
  save(model, folder.path());
  const NoGrad no_grad;
  EXPECT_EQ(load(folder.path())(inputs)["loss"].item(), model(inputs)["loss"].item());
}

// The "heed" keys change training, deterministically for a seed, but not evaluation.
void expect_trains_differently(Json config, const TensorMap& inputs) {
  for (const char* none : {"hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop", "embd_pdrop", "attn_pdrop", "dropout",
                           "attention_dropout", "seq_classif_dropout"})
    config[none] = 0;
  const NoGrad no_grad;
  const Model model = make_model(config);
  config.erase("heed");
  const Model plain = make_model(config);
  const auto trained = [&](const Model& each, uint64_t seed) {
    Rng rng(seed);
    return each(inputs, {.mode = training_with(rng)})["loss"].item();
  };
  EXPECT_EQ(model(inputs)["loss"].item(), plain(inputs)["loss"].item());
  EXPECT_EQ(trained(plain, 1), plain(inputs)["loss"].item());
  EXPECT_EQ(trained(model, 1), trained(model, 1));
  EXPECT_NE(trained(model, 1), trained(plain, 1));
}

TEST(Variant, every_vision_transformer_trains_and_round_trips) {
  for (const char* key : {"positions", "pattern", "pooling", "features"})
    for (const Choice& each : choices(key).all) {
      Json own{{key, each.name}};
      if (each.term && each.term->masks && !each.term->settings.empty()) own[key] = each.name + ":2";
      if (each.needs_grid && std::string(key) != "pooling") own["pooling"] = "gap";
      if (std::string(key) == "features") own["attention"] = "linear";
      expect_sound(vision(own), images());
    }
  for (const char* kind : {"soft", "hard", "channel", "kernel"}) expect_sound(vision({{"attention", kind}}), images());
  expect_sound(vision({{"attention", "pooled"}, {"pooling", "gap"}, {"reduction", 2}}), images());
  expect_sound(vision({{"norm", "after"}, {"soft_cap", 5.0}, {"positions", {"learned", "relative"}}, {"reach", 4}}), images());
  expect_sound(vision({{"pattern", {{"kind", "grid_window"}, {"rows", 1}}}, {"pooling", "gap"}}), images());
  expect_sound(
      vision({{"pattern", Json::array({{{"kind", "window"}, {"before", 3}, {"globals", 1}}, {{"kind", "dilated"}, {"step", 2}}})}}),
      images());
  expect_sound(vision({{"pattern", {{"kind", "chunks"}, {"size", 5}, {"shifted", true}}}}), images());
}

TEST(Variant, every_text_model_trains_and_round_trips) {
  for (const char* name :
       {"BertForSequenceClassification", "DistilBertForSequenceClassification", "GPT2LMHeadModel", "LlamaForCausalLM", "MarianMTModel"}) {
    SCOPED_TRACE(name);
    for (const Choice& each : choices("positions").all)
      if (!each.needs_grid && !each.needs_all_tokens && each.name != "learned")
        expect_sound(text(name, {{"positions", each.name}}), sentences(name));
    expect_sound(text(name, {{"pattern", {{"kind", "window"}, {"before", 2}, {"after", 2}}}}), sentences(name));
    expect_sound(text(name, {{"attention", "linear"}}), sentences(name));
    expect_sound(text(name, {{"norm", "before"}}), sentences(name));
    expect_trains_differently(text(name, {{"stochastic_depth", 0.5}}), sentences(name));
  }
  for (const char* name : {"BertForSequenceClassification", "DistilBertForSequenceClassification"})
    for (const char* pooling : {"gap", "map"}) expect_sound(text(name, {{"pooling", pooling}}), sentences(name));
}

// Cordonnier et al. 2020, a smaller version of the config in docs/models.md.
TEST(Variant, the_convolution_experiment_is_a_config) {
  Json config = vision({{"positions", "gaussian"}, {"content", false}, {"project_values", false}, {"pooling", "gap"}, {"norm", "after"}});
  config["num_attention_heads"] = 9;
  const Model model = make_model(config);
  const int64_t D = 12, layer = 9 * 3 + 9 * D * D + D + 2 * D * 20 + 20 + D + 4 * D;
  EXPECT_EQ(model.params().count(), 3 * 2 * 2 * D + D + 2 * layer + D * 3 + 3);
  expect_sound(config, images());
}

TEST(Variant, a_window_leaves_no_probability_outside) {
  const Model model = make_model(text("BertForSequenceClassification", {{"pattern", {{"kind", "window"}, {"before", 1}, {"after", 2}}}}));
  const std::vector<float> map = model({{"input_ids", tokens(1, 9)}}, {.attentions = true})["attentions.1"].to_vector<float>();
  for (int64_t i = 0; i < 9; ++i)
    for (int64_t j = 0; j < 9; ++j) EXPECT_EQ(map[static_cast<size_t>(i * 9 + j)] > 0, j >= i - 1 && j <= i + 2) << i << ' ' << j;
}

TEST(Variant, the_mean_of_a_sentence_does_not_see_padding) {
  for (const char* pooling : {"gap", "map"}) {
    const Model model = make_model(text("BertForSequenceClassification", {{"pooling", pooling}}));
    const Tensor all = tokens(1, 9);
    const Tensor mask = Tensor::from(std::vector<int64_t>{1, 1, 1, 1, 1, 0, 0, 0, 0}, {1, 9}, kCpu);
    const std::vector<float> masked = model({{"input_ids", all}, {"attention_mask", mask}})["logits"].to_vector<float>();
    const std::vector<float> cut = model({{"input_ids", slice(all, 1, 0, 5)}})["logits"].to_vector<float>();
    for (size_t i = 0; i < cut.size(); ++i) EXPECT_NEAR(masked[i], cut[i], 1e-6f);
  }
}

TEST(Variant, steps_with_other_positions_match_one_pass) {
  const NoGrad no_grad;
  for (const Json& own : {Json{{"positions", "alibi"}}, Json{{"positions", "relative"}}, Json{{"positions", "rotary"}},
                          Json{{"attention", "linear"}}, Json{{"pattern", {{"kind", "window"}, {"before", 2}}}}}) {
    SCOPED_TRACE(own.dump());
    const Model model = make_model(text("GPT2LMHeadModel", own));
    const Tensor all = tokens(2, 9);
    const std::vector<float> at_once = slice(model({{"input_ids", all}})["logits"], 1, 8, 9).to_vector<float>();
    DecodeState state = model.decoder().start({{"input_ids", all}});
    model.decoder().step(state, slice(all, 1, 0, 7));
    model.decoder().step(state, slice(all, 1, 7, 8));
    const std::vector<float> last = model.decoder().step(state, slice(all, 1, 8, 9)).to_vector<float>();
    for (size_t i = 0; i < last.size(); ++i) EXPECT_NEAR(last[i], at_once[i], 1e-5f);
  }
}

// With feed-forward outputs of 0, a layer is its attention branch: an item whose branch is dropped does not change.
TEST(Variant, stochastic_depth_grows_with_the_layers_and_keeps_the_mean) {
  const NoGrad no_grad;
  Json config = vision({{"stochastic_depth", 0.4}});
  const Model model = make_model(config);
  config.erase("heed");
  const Model plain = make_model(config);
  for (const Model* each : {&model, &plain})
    for (const Parameter& parameter : each->params().all())
      if (parameter.name.find("layer.") != std::string::npos && parameter.name.find(".output.dense") != std::string::npos &&
          parameter.name.find("attention") == std::string::npos)
        copy_into(Tensor::zeros(parameter.tensor.shape(), kCpu), parameter.tensor);
  constexpr int64_t B = 3000;
  Rng pixels(3), rng(1);
  const Tensor image = random_normal({1, 3, 8, 12}, 0, 1, pixels, kCpu);
  const TensorMap many{{"pixel_values", concat(std::vector<Tensor>(B, image), 0)}};
  EXPECT_EQ(model({{"pixel_values", image}})["logits"].to_vector<float>(), plain({{"pixel_values", image}})["logits"].to_vector<float>());
  const TensorMap out = model(many, {.hidden_states = true, .mode = training_with(rng)});
  const TensorMap exact = plain({{"pixel_values", image}}, {.hidden_states = true});
  const std::vector<float> start = exact.at("hidden_states.0").to_vector<float>(), end = exact.at("hidden_states.1").to_vector<float>();
  std::vector<double> mean(start.size());
  for (const int64_t layer : {0, 1}) {
    const std::vector<float> before = out.at("hidden_states." + std::to_string(layer)).to_vector<float>();
    const std::vector<float> after = out.at("hidden_states." + std::to_string(layer + 1)).to_vector<float>();
    int64_t passed = 0;
    for (size_t b = 0; b < B; ++b) {
      const auto from = static_cast<int64_t>(b * start.size()), to = from + std::ssize(start);
      passed += std::equal(before.begin() + from, before.begin() + to, after.begin() + from);
      for (size_t i = 0; i < start.size() && layer == 0; ++i) mean[i] += static_cast<double>(after[b * start.size() + i]) / B;
    }
    EXPECT_NEAR(static_cast<double>(passed) / B, layer == 0 ? 0.2 : 0.4, 0.03) << layer;  // about three deviations
  }
  // A kept branch counts 1 / 0.8: the mean of 3000 deviates by sqrt(0.2 / 0.8 / 3000), 0.009 of the branch.
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean[i], end[i], 0.04 * std::abs(end[i] - start[i]) + 1e-5) << i;
}

TEST(Variant, one_choice_has_several_spellings) {
  const auto logits = [](const Json& own) { return make_model(vision(own))(images())["logits"].to_vector<float>(); };
  EXPECT_EQ(logits({{"attention", "kernel"}, {"features", "exp"}}), logits({{"attention", "linear"}, {"features", "random"}}));
  EXPECT_EQ(logits({{"pattern", "window:4:2"}}), logits({{"pattern", {{"kind", "sliding_window"}, {"before", 4}, {"after", 2}}}}));
  EXPECT_EQ(logits({{"positions", "relative:3"}}), logits({{"positions", {{"kind", "relative"}, {"reach", 3}}}}));
  EXPECT_EQ(logits({{"positions", "relative:3"}}), logits({{"positions", "relative_bias"}, {"reach", 3}}));
  EXPECT_EQ(logits({{"positions", {"t5:8:16", "learned"}}}),
            logits({{"positions", {"learned", {{"kind", "bucketed"}, {"buckets", 8}, {"far", 16}}}}}));
}

TEST(Variant, refuses_what_it_does_not_know) {
  const auto refuses = [](const Json& config, const std::string& fragment) { expect_refused([&] { make_model(config); }, fragment); };
  refuses(vision({{"position", "alibi"}}), "config: heed.position is not known; did you mean 'positions'?");
  refuses(vision({{"positions", "gausian"}}), "heed.positions is \"gausian\", expected one of none, learned");
  refuses(vision({{"positions", "gaussian"}}), "only images without class token have one");
  refuses(vision({{"attention", "loud"}}), "heed.attention is");
  refuses(vision({{"pooling", "sum"}}), "heed.pooling is");
  refuses(vision({{"stochastic_depth", 1}}), "heed.stochastic_depth is");
  refuses(vision({{"pattern", {{"kind", "stripes"}}}}), "heed.pattern: kind is");
  refuses(vision({{"pattern", "windw:4"}}), "expected one of causal, window, chunks, dilated, grid_window");
  refuses(vision({{"pattern", "window:x"}}), "heed.pattern \"window:x\": before='x', expected a whole number of 0 or more");
  refuses(vision({{"pattern", {{"kind", "window"}, {"befor", 4}}}}), "heed.pattern: window has no setting befor; did you mean 'before'?");
  refuses(vision({{"positions", {{"kind", "relative"}, {"reach", 0}}}}),
          "heed.positions: reach is \"0\", expected a whole number of 1 or more");
  refuses(vision({{"positions", 3}}), "heed.positions is \"3\", expected a name, an object or a list of them");
  refuses(vision({{"soft_cap", 0}}), "heed.soft_cap is \"0\", expected a number above 0");
  refuses(text("BertForSequenceClassification", {{"attention", "pooled"}}), "heed.attention is");
  const Model channel = make_model(vision({{"attention", "channel"}}));
  expect_error([&] { channel(images(), {.attentions = true}); }, "this kind of attention has none");
}

}  // namespace
}  // namespace heed::test
