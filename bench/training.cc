// Whole steps of training: forward, backward, clipping, AdamW. Three small models with the batches they are trained on.
#include <algorithm>
#include <memory>
#include <numeric>

#include "bench/bench.h"
#include "heed/core/random.h"
#include "heed/models/cost.h"
#include "heed/ops/ops.h"
#include "heed/train/optimizer.h"

namespace heed::bench {
namespace {

constexpr int64_t kWords = 8000;

struct Trained {
  Json config;
  InputSize size;
  Named inputs;
  float label_smoothing = 0;
  double labelled = 1;          // the share of tokens with labels
  std::string last_layer = {};  // of an encoder, by its name; empty: all of it is read
  double read = 1;              // the share of its tokens that a head reads
};

Tensor random_tokens(int64_t texts, int64_t tokens) { return reshape(random_targets(texts * tokens, kWords), {texts, tokens}); }

// Words to be guessed at random places; the others are -100, which does not count.
Tensor few_labels(int64_t texts, int64_t tokens, int64_t percent) {
  std::vector<int64_t> labels = random_targets(texts * tokens, kWords).to_vector<int64_t>();
  const std::vector<int64_t> chance = random_targets(texts * tokens, 100).to_vector<int64_t>();
  for (size_t i = 0; i < labels.size(); ++i)
    if (chance[i] >= percent) labels[i] = -100;
  return Tensor::from(labels, {texts, tokens});
}

Trained vit_tiny() {
  Rng rng(1);
  constexpr int64_t pictures = 64;
  return {.config = {{"architectures", {"ViTForImageClassification"}},
                     {"model_type", "vit"},
                     {"image_size", 32},
                     {"patch_size", 4},
                     {"hidden_size", 192},
                     {"num_hidden_layers", 6},
                     {"num_attention_heads", 3},
                     {"intermediate_size", 768},
                     {"num_labels", 10}},
          .size = {.batch = pictures},
          .inputs = {{"pixel_values", random_normal({pictures, 3, 32, 32}, 0, 1, rng)}, {"labels", random_targets(pictures, 10)}},
          .last_layer = "encoder.layer.5.",
          .read = 1.0 / 65};
}

Trained bert_mini() {
  constexpr int64_t texts = 32, tokens = 128;
  const Tensor labels = few_labels(texts, tokens, 15);
  std::vector<double> counts(texts, 0.0);
  const std::vector<int64_t> all = labels.to_vector<int64_t>();
  for (size_t i = 0; i < all.size(); ++i) counts[i / tokens] += all[i] != -100;
  const double sum = std::accumulate(counts.begin(), counts.end(), 0.0), most = *std::max_element(counts.begin(), counts.end());
  return {.config = {{"architectures", {"BertForPreTraining"}},
                     {"model_type", "bert"},
                     {"vocab_size", kWords},
                     {"hidden_size", 256},
                     {"num_hidden_layers", 4},
                     {"num_attention_heads", 4},
                     {"intermediate_size", 1024}},
          .size = {.batch = texts, .tokens = tokens},
          .inputs = {{"input_ids", random_tokens(texts, tokens)},
                     {"token_type_ids", Tensor::zeros({texts, tokens}, DType::i64)},
                     {"labels", labels},
                     {"next_sentence_label", random_targets(texts, 2)}},
          .labelled = sum / (texts * tokens),
          .last_layer = "encoder.layer.3.",
          .read = most / tokens};
}

Trained transformer_small() {
  constexpr int64_t texts = 64, tokens = 24;
  return {.config = {{"architectures", {"MarianMTModel"}},
                     {"model_type", "marian"},
                     {"vocab_size", kWords},
                     {"d_model", 256},
                     {"encoder_layers", 3},
                     {"decoder_layers", 3},
                     {"encoder_attention_heads", 4},
                     {"decoder_attention_heads", 4},
                     {"encoder_ffn_dim", 1024},
                     {"decoder_ffn_dim", 1024},
                     {"activation_function", "relu"},
                     {"scale_embedding", true},
                     {"pad_token_id", 0},
                     {"decoder_start_token_id", 0}},
          .size = {.batch = texts, .tokens = tokens},
          .inputs = {{"input_ids", random_tokens(texts, tokens)}, {"labels", random_tokens(texts, tokens)}},
          .label_smoothing = 0.1f};
}

// Multiply-adds count as two; forward and twice as much backward. What need not be computed does not count: words without labels, and
// in the last layer of an encoder what is not read (keys and values are).
double work_of(const Trained& what) {
  const ModelCost cost = cost_of(make_model(what.config, {.names = {.shapes_only = true}}), what.size);
  double total = 0;
  for (const ModelPart& part : cost.parts) {
    const auto has = [&](const char* text) { return part.name.find(text) != std::string::npos; };
    const bool last = !what.last_layer.empty() && has(what.last_layer.c_str()) && !has("key") && !has("value");
    total += (has("predictions") ? what.labelled : last ? what.read : 1) * static_cast<double>(part.multiply_adds);
  }
  return 2 * 3 * total;
}

Call step_of(const Trained& what) {
  const auto model = std::make_shared<const Model>(make_model(what.config));
  ParameterGroup decays{.parameters = {}, .weight_decay = 0.01f}, others;
  Tensors all;
  for (const Parameter& parameter : model->params().all()) {
    if (!parameter.options.learned) continue;
    (parameter.options.decays ? decays : others).parameters.push_back(parameter.tensor);
    all.push_back(parameter.tensor);
  }
  const auto adam = std::make_shared<Adam>(std::vector<ParameterGroup>{decays, others}, AdamOptions{});
  return [=, rng = std::make_shared<Rng>(7)] {
    const Tensor loss =
        (*model)(what.inputs, {.mode = training_with(*rng), .loss_only = true, .label_smoothing = what.label_smoothing})["loss"];
    backward(loss);
    clip_gradients(all, 1);
    adam->step(1e-4f);
    adam->zero_grad();
  };
}

}  // namespace

std::vector<Benchmark> training_benchmarks() {
  std::vector<Benchmark> list;
  const auto put = [&](const std::string& name, const Trained& what) {
    for (const char* peer : {"eager", "compiled"})
      list.push_back({name_of(name + "/train/" + peer, {what.size.batch}),
                      Unit::flops,
                      work_of(what),
                      [=] { return step_of(what); },
                      {},
                      {},
                      0,
                      true});
  };
  put("vit_tiny", vit_tiny());
  put("bert_mini", bert_mini());
  put("transformer_small", transformer_small());
  return list;
}

}  // namespace heed::bench
