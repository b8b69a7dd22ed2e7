// Whole models in bf16 with random weights: training steps on inputs that stay on the device, inference, decoding.
#include <memory>

#include "bench/gpu.h"
#include "heed/core/captured_step.h"
#include "heed/models/generate.h"
#include "heed/models/labelled_tokens.h"
#include "heed/ops/ops.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/presets.h"

namespace heed::bench {
namespace {

// A preset's config.json with these changes, without dropout.
Json config_of(const char* preset, const Json& changes, const Json& tiny_changes, const GpuSetup& setup) {
  Json config = preset_named(preset).config;
  for (const char* key : {"hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop", "embd_pdrop", "attn_pdrop"})
    if (config.contains(key)) config[key] = 0.0;
  config.update(changes);
  if (setup.tiny) config.update(tiny_changes);
  return config;
}

Json tiny_encoder(int64_t heads) {
  return {{"hidden_size", 32}, {"num_hidden_layers", 1}, {"num_attention_heads", heads}, {"intermediate_size", 64}};
}

Json vit_cifar(const GpuSetup& setup) { return config_of("vit-tiny", {{"num_hidden_layers", 12}}, tiny_encoder(2), setup); }

Json vit_b16(const GpuSetup& setup) {
  Json tiny = tiny_encoder(2);
  tiny["image_size"] = 32;
  return config_of("vit-base", {{"num_labels", 1000}}, tiny, setup);
}

// The convolution experiment: 16 x 16 tokens, 6 layers of 9 position-only heads as wide as the model.
Json t6(const GpuSetup& setup) {
  Json tiny = tiny_encoder(9);
  tiny["head_dim"] = 32;
  return config_of("gaussian", Json::object(), tiny, setup);
}

Json bert_base(const GpuSetup& setup) {
  Json tiny = tiny_encoder(2);
  tiny["vocab_size"] = 100;
  return config_of("bert-base", {{"architectures", {"BertForMaskedLM"}}, {"vocab_size", 30522}}, tiny, setup);
}

Json gpt2(const GpuSetup& setup) {
  return config_of("gpt2", {{"vocab_size", 50257}}, {{"n_embd", 32}, {"n_layer", 1}, {"n_head", 2}, {"n_inner", 64}, {"vocab_size", 100}},
                   setup);
}

Tensor pixels_for(const Json& config, int64_t images, const GpuSetup& setup) {
  const auto side = config.at("image_size").get<int64_t>();
  return gpu_random({images, 3, side, side}, setup, DType::f32);
}

TensorMap image_batch(const Json& config, int64_t images, const GpuSetup& setup) {
  return {{"pixel_values", pixels_for(config, images, setup)},
          {"labels", random_targets(images, config.at("num_labels").get<int64_t>()).to(setup.device)}};
}

// 15% of the tokens have a label.
TensorMap masked_batch(const Json& config, int64_t texts, int64_t tokens, const GpuSetup& setup) {
  const auto words = config.at("vocab_size").get<int64_t>();
  const Tensor ids = random_targets(texts * tokens, words);
  std::vector<int64_t> labels = ids.to_vector<int64_t>();
  const std::vector<int64_t> chance = random_targets(texts * tokens, 100).to_vector<int64_t>();
  for (size_t i = 0; i < labels.size(); ++i)
    if (chance[i] >= 15) labels[i] = -100;
  TensorMap inputs =
      with_labelled_tokens({{"input_ids", reshape(ids, {texts, tokens})}, {"labels", Tensor::from(labels, {texts, tokens}, kCpu)}});
  for (auto& [name, tensor] : inputs) tensor = tensor.to(setup.device);
  return inputs;
}

// Forward, backward, clipping, AdamW; the norm of the gradient is read by the host after every step, which is a
// CUDA graph.
Call training_call(const Json& config, const TensorMap& inputs, const GpuSetup& setup) {
  const auto model = std::make_shared<const Model>(make_model(config));
  const auto optimizer = std::make_shared<OptimizerStep>(*model, TrainOptions{.weight_decay = 0.01f});
  const auto rng = std::make_shared<Rng>(7);
  const auto work = [=] {
    optimizer->zero_grad();
    backward((*model)(inputs, {.mode = training_with(*rng), .precision = DType::bf16, .loss_only = true})["loss"]);
    return Tensors{optimizer->apply()};
  };
  const auto step = std::make_shared<CapturedStep>(setup.device, rng.get(), work);
  return [=] {
    optimizer->begin(1e-4f);
    optimizer->finish(step->run()[0].item());
  };
}

GpuLine image_training(const std::string& model, const Json& config, int64_t images, const GpuSetup& setup) {
  const int64_t batch = setup.tiny ? 2 : images;
  return {.name = name_of(model + "/train", {batch}),
          .make = [=] { return training_call(config, image_batch(config, batch, setup), setup); },
          .items = static_cast<double>(batch),
          .item = "images"};
}

GpuLine text_training(const std::string& model, const Json& config, const GpuSetup& setup) {
  const int64_t texts = setup.tiny ? 2 : 64, tokens = setup.tiny ? 8 : 128;
  return {.name = name_of(model + "/train", {texts, tokens}),
          .make = [=] { return training_call(config, masked_batch(config, texts, tokens, setup), setup); },
          .items = static_cast<double>(texts),
          .item = "sequences"};
}

GpuLine image_inference(const std::string& model, const Json& config, int64_t images, const GpuSetup& setup) {
  return {.name = name_of(model + "/forward", {images}),
          .make = [=]() -> Call {
            const auto network = std::make_shared<const Model>(make_model(config));
            const Tensor x = pixels_for(config, images, setup);
            const auto step = std::make_shared<CapturedStep>(setup.device, nullptr, [=] {
              const NoGrad quiet;
              return Tensors{(*network)({{"pixel_values", x}}, {.precision = DType::bf16})["logits"]};
            });
            return [step] { step->run(); };
          },
          .items = static_cast<double>(images),
          .item = "images"};
}

// One sequence, greedily. A token reads every weight of the layers and of the tied embeddings once.
GpuLine decoding(const Json& config, const GpuSetup& setup) {
  const int64_t prompt = setup.tiny ? 3 : 16, tokens = setup.tiny ? 2 : 128;
  const auto D = config.at("n_embd").get<double>(), layers = config.at("n_layer").get<double>();
  const double weights = layers * (4 * D * D + 2 * D * config.at("n_inner").get<double>()) + D * config.at("vocab_size").get<double>();
  return {.name = name_of("gpt2/decode", {1, prompt, tokens}),
          .make = [=]() -> Call {
            const Tensor first = reshape(random_targets(prompt, config.at("vocab_size").get<int64_t>()), {1, prompt});
            return [model = std::make_shared<const Model>(make_model(config, {.weights = Weights::packed})), first, tokens] {
              generate(*model, {{"input_ids", first}}, {.max_new_tokens = tokens});
            };
          },
          .bytes = static_cast<double>(tokens) * 2 * weights,
          .items = static_cast<double>(tokens),
          .item = "tokens"};
}

}  // namespace

GpuLines gpu_model_lines(const GpuSetup& setup) {
  GpuLines lines;
  for (const int64_t images : {128, 1024}) lines.push_back(image_training("vit-cifar", vit_cifar(setup), images, setup));
  lines.push_back(image_training("vit-b16", vit_b16(setup), 128, setup));
  for (const int64_t images : {100, 1000}) lines.push_back(image_training("t6", t6(setup), images, setup));
  lines.push_back(text_training("bert-base", bert_base(setup), setup));
  for (const int64_t images : {1, setup.tiny ? 2 : 64}) lines.push_back(image_inference("vit-b16", vit_b16(setup), images, setup));
  lines.push_back(decoding(gpt2(setup), setup));
  return lines;
}

}  // namespace heed::bench
