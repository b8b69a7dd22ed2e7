// Whole training steps: forward, backward, clipping, AdamW. Three small models with typical batches.
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

constexpr int64_t kVocabulary = 8000;

struct TrainingSetup {
  Json config;
  InputSize size;
  TensorMap inputs;
  float label_smoothing = 0;
  double labelled = 1;          // share of tokens with labels
  std::string last_layer = {};  // name of the last encoder layer; empty: all its outputs are used
  double used = 1;              // share of its tokens that the head uses
};

Tensor random_tokens(int64_t texts, int64_t tokens) { return reshape(random_targets(texts * tokens, kVocabulary), {texts, tokens}); }

// Labels at random positions; the others are -100, which is ignored.
Tensor few_labels(int64_t texts, int64_t tokens, int64_t percent) {
  std::vector<int64_t> labels = random_targets(texts * tokens, kVocabulary).to_vector<int64_t>();
  const std::vector<int64_t> chance = random_targets(texts * tokens, 100).to_vector<int64_t>();
  for (size_t i = 0; i < labels.size(); ++i)
    if (chance[i] >= percent) labels[i] = -100;
  return Tensor::from(labels, {texts, tokens}, kCpu);
}

TrainingSetup vit_tiny() {
  Rng rng(1);
  constexpr int64_t images = 64;
  return {.config = {{"architectures", {"ViTForImageClassification"}},
                     {"model_type", "vit"},
                     {"image_size", 32},
                     {"patch_size", 4},
                     {"hidden_size", 192},
                     {"num_hidden_layers", 6},
                     {"num_attention_heads", 3},
                     {"intermediate_size", 768},
                     {"num_labels", 10}},
          .size = {.batch = images},
          .inputs = {{"pixel_values", random_normal({images, 3, 32, 32}, 0, 1, rng, kCpu)}, {"labels", random_targets(images, 10)}},
          .last_layer = "encoder.layer.5.",
          .used = 1.0 / 65};
}

TrainingSetup bert_mini() {
  constexpr int64_t texts = 32, tokens = 128;
  const Tensor labels = few_labels(texts, tokens, 15);
  std::vector<double> counts(texts, 0.0);
  const std::vector<int64_t> all = labels.to_vector<int64_t>();
  for (size_t i = 0; i < all.size(); ++i) counts[i / tokens] += all[i] != -100;
  const double sum = std::accumulate(counts.begin(), counts.end(), 0.0), most = *std::max_element(counts.begin(), counts.end());
  return {.config = {{"architectures", {"BertForPreTraining"}},
                     {"model_type", "bert"},
                     {"vocab_size", kVocabulary},
                     {"hidden_size", 256},
                     {"num_hidden_layers", 4},
                     {"num_attention_heads", 4},
                     {"intermediate_size", 1024}},
          .size = {.batch = texts, .tokens = tokens},
          .inputs = {{"input_ids", random_tokens(texts, tokens)},
                     {"token_type_ids", Tensor::zeros({texts, tokens}, DType::i64, kCpu)},
                     {"labels", labels},
                     {"next_sentence_label", random_targets(texts, 2)}},
          .labelled = sum / (texts * tokens),
          .last_layer = "encoder.layer.3.",
          .used = most / tokens};
}

TrainingSetup transformer_small() {
  constexpr int64_t texts = 64, tokens = 24;
  return {.config = {{"architectures", {"MarianMTModel"}},
                     {"model_type", "marian"},
                     {"vocab_size", kVocabulary},
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

// Multiply-adds count as two operations; backward is twice the forward. What need not be computed is not counted: tokens without labels,
// and in the last encoder layer everything but keys and values of tokens that are not used.
double work_of(const TrainingSetup& setup) {
  const ModelCost cost = cost_of(make_model(setup.config, {.names = {.shapes_only = true}}), setup.size);
  double total = 0;
  for (const ModelPart& part : cost.parts) {
    const auto has = [&](const char* text) { return part.name.find(text) != std::string::npos; };
    const bool last = !setup.last_layer.empty() && has(setup.last_layer.c_str()) && !has("key") && !has("value");
    total += (has("predictions") ? setup.labelled : last ? setup.used : 1) * static_cast<double>(part.multiply_adds);
  }
  return 2 * 3 * total;
}

Call step_of(const TrainingSetup& setup) {
  const auto model = std::make_shared<const Model>(make_model(setup.config));
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
        (*model)(setup.inputs, {.mode = training_with(*rng), .loss_only = true, .label_smoothing = setup.label_smoothing})["loss"];
    backward(loss);
    clip_gradients(all, 1);
    adam->step(1e-4f);
    adam->zero_grad();
  };
}

}  // namespace

std::vector<Benchmark> training_benchmarks() {
  std::vector<Benchmark> list;
  const auto add_benchmarks = [&](const std::string& name, const TrainingSetup& setup) {
    for (const char* peer : {"eager", "compiled"})
      list.push_back({name_of(name + "/train/" + peer, {setup.size.batch}),
                      Unit::flops,
                      work_of(setup),
                      [=] { return step_of(setup); },
                      {},
                      {},
                      0,
                      true});
  };
  add_benchmarks("vit_tiny", vit_tiny());
  add_benchmarks("bert_mini", bert_mini());
  add_benchmarks("transformer_small", transformer_small());
  return list;
}

}  // namespace heed::bench
