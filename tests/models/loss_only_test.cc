// ForwardOptions::loss_only skips work; the loss and all gradients stay the same.
#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/parallel.h"
#include "heed/models/labelled_tokens.h"
#include "heed/models/model.h"

namespace heed::test {
namespace {

constexpr int64_t kWords = 50, kTexts = 3, kTokens = 12;

Json config_of(const std::string& architecture) {
  return {{"architectures", {architecture}},
          {"vocab_size", kWords},
          {"hidden_size", 16},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"intermediate_size", 24},
          {"image_size", 8},
          {"patch_size", 2},
          {"num_labels", 3},
          {"max_position_embeddings", 20},
          {"n_embd", 16},
          {"n_layer", 2},
          {"n_head", 2},
          {"n_positions", 20},
          {"dim", 16},
          {"n_layers", 2},
          {"n_heads", 2},
          {"hidden_dim", 24},
          {"num_layers", 1},
          {"num_heads", 2},
          {"d_kv", 6},
          {"d_ff", 24},
          {"d_model", 16},
          {"encoder_layers", 1},
          {"decoder_layers", 1},
          {"encoder_attention_heads", 2},
          {"decoder_attention_heads", 2},
          {"encoder_ffn_dim", 24},
          {"decoder_ffn_dim", 24},
          {"pad_token_id", 0},
          {"decoder_start_token_id", 0}};
}

Tensor numbers(const Shape& shape, int64_t below, int64_t keep_every = 1) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count(shape); ++i) out.push_back(i % keep_every == 0 ? (7 * i * i + 3 * i + 1) % below : -100);
  return Tensor::from(out, shape, kCpu);
}

TensorMap loss_inputs_of(const std::string& architecture) {
  Rng rng(3);
  if (architecture.starts_with("ViT")) return {{"pixel_values", random_normal({3, 3, 8, 8}, 0, 1, rng, kCpu)}, {"labels", numbers({3}, 3)}};
  std::vector<int64_t> mask(kTexts * kTokens, 1);
  mask[kTokens - 1] = mask[2 * kTokens - 1] = 0;  // two texts are shorter
  TensorMap inputs{{"input_ids", numbers({kTexts, kTokens}, kWords)}, {"attention_mask", Tensor::from(mask, {kTexts, kTokens}, kCpu)}};
  const bool sentences = architecture.ends_with("SequenceClassification") || architecture.ends_with("NextSentencePrediction");
  inputs["labels"] = sentences ? numbers({kTexts}, 2) : numbers({kTexts, kTokens}, kWords, 5);  // some texts have more labels than others
  if (architecture == "BertForPreTraining") inputs["next_sentence_label"] = numbers({kTexts}, 2);
  return inputs;
}

struct Gradients {
  float loss;
  std::vector<std::vector<float>> gradients;
};

Gradients train_on(const std::string& architecture, const TensorMap& inputs, const ForwardOptions& options) {
  const Model model = make_model(config_of(architecture));
  const Tensor loss = model(inputs, options).at("loss");
  backward(loss);
  Gradients out{loss.item(), {}};
  for (const Parameter& parameter : model.params().all())
    if (parameter.tensor.grad().defined()) out.gradients.push_back(parameter.tensor.grad().to_vector<float>());
  return out;
}

Gradients train(const std::string& architecture, const ForwardOptions& options) {
  return train_on(architecture, loss_inputs_of(architecture), options);
}

void expect_same(const Gradients& a, const Gradients& b) {
  EXPECT_NEAR(a.loss, b.loss, 1e-5 * a.loss);
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    double largest = 1e-3, apart = 0;
    for (size_t k = 0; k < a.gradients[i].size(); ++k) {
      largest = std::max(largest, std::abs(static_cast<double>(a.gradients[i][k])));
      apart = std::max(apart, std::abs(static_cast<double>(a.gradients[i][k]) - b.gradients[i][k]));
    }
    EXPECT_LE(apart, 2e-5 * largest) << "parameter " << i;
  }
}

class LossOnly : public testing::TestWithParam<const char*> {};

TEST_P(LossOnly, has_the_same_loss_and_gradients) { expect_same(train(GetParam(), {}), train(GetParam(), {.loss_only = true})); }

TEST_P(LossOnly, smooths_labels_in_the_same_way) {
  EXPECT_NEAR(train(GetParam(), {.label_smoothing = 0.1f}).loss, train(GetParam(), {.loss_only = true, .label_smoothing = 0.1f}).loss,
              1e-4);
  EXPECT_NE(train(GetParam(), {}).loss, train(GetParam(), {.label_smoothing = 0.1f}).loss);
}

TEST_P(LossOnly, every_bit_is_the_same_with_any_number_of_threads) {
  const int before = thread_count();
  Gradients first{};
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    Rng rng(5);
    const Gradients now = train(GetParam(), {.mode = training_with(rng), .loss_only = true});
    if (threads == 1) first = now;
    EXPECT_EQ(now.loss, first.loss) << threads << " threads";
    EXPECT_EQ(now.gradients, first.gradients) << threads << " threads";
  }
  set_thread_count(before);
}

INSTANTIATE_TEST_SUITE_P(Models, LossOnly,
                         testing::Values("ViTForImageClassification", "BertForPreTraining", "BertForMaskedLM",
                                         "BertForSequenceClassification", "BertForNextSentencePrediction", "GPT2LMHeadModel",
                                         "GPT2ForSequenceClassification", "RobertaForMaskedLM", "RobertaForSequenceClassification",
                                         "DistilBertForMaskedLM", "DistilBertForSequenceClassification", "ModernBertForMaskedLM",
                                         "MarianMTModel", "T5ForConditionalGeneration"));

// Inputs that the host computes before a step replace those that the model would compute.
class LabelledTokens : public testing::TestWithParam<const char*> {};

TEST_P(LabelledTokens, given_as_inputs_have_the_same_loss_and_gradients) {
  const Gradients expected = train(GetParam(), {});
  for (const int64_t capacity : {0, 1, 9}) {
    const TensorMap inputs = with_labelled_tokens(loss_inputs_of(GetParam()), capacity);
    EXPECT_EQ(inputs.at("labels").count() % 64, 0);
    EXPECT_GE(inputs.at("labelled_rows").size(1), capacity + 1);
    expect_same(expected, train_on(GetParam(), inputs, {.loss_only = true}));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LabelledTokens,
                         testing::Values("BertForPreTraining", "BertForMaskedLM", "RobertaForMaskedLM", "DistilBertForMaskedLM",
                                         "ModernBertForMaskedLM"));

}  // namespace
}  // namespace heed::test
