#include "heed/train/presets.h"

#include <algorithm>
#include <cmath>

#include "heed/core/nearest.h"
#include "heed/models/architecture.h"
#include "heed/train/settings_value.h"

namespace heed {
namespace {

constexpr int64_t kVocabulary = 1000;  // placeholder, until there is a tokenizer

struct Sizes {
  int64_t width, layers, heads, wide;
};

// Published models are wide and use 0.02. Narrow models train slowly with it, so they use 1 / sqrt(width), as in Xavier initialization
// (Glorot and Bengio 2010).
double initializer_range(int64_t width) { return width >= 768 ? 0.02 : std::round(1e3 / std::sqrt(static_cast<double>(width))) / 1e3; }

Json vit(Sizes sizes, int64_t image, int64_t patch) {
  return {{"architectures", {"ViTForImageClassification"}},
          {"model_type", "vit"},
          {"image_size", image},
          {"patch_size", patch},
          {"num_channels", 3},
          {"num_labels", 10},
          {"hidden_size", sizes.width},
          {"num_hidden_layers", sizes.layers},
          {"num_attention_heads", sizes.heads},
          {"intermediate_size", sizes.wide},
          {"hidden_act", "gelu"},
          {"initializer_range", initializer_range(sizes.width)},
          {"layer_norm_eps", 1e-6}};
}

// Blocks of half the width, so that a token with two of them costs as much as without experts.
Json with_experts(Json config, int64_t count) {
  config["intermediate_size"] = config["intermediate_size"].get<int64_t>() / 2;
  config["heed"] = {{"experts", {{"count", count}, {"top", 2}, {"balance", 0.01}}}};
  return config;
}

// Attention that can express convolution (Cordonnier et al. 2020): tokens of 2 x 2 pixels, position-only heads as wide as the model.
Json gaussian(Sizes sizes) {
  Json config = vit(sizes, 32, 2);
  config["hidden_dropout_prob"] = 0.1;
  config["layer_norm_eps"] = 1e-12;
  config["head_dim"] = sizes.width;
  config["heed"] = {{"positions", "gaussian"}, {"content", false}, {"project_values", false}, {"pooling", "gap"}, {"norm", "after"}};
  return config;
}

// ResNet-18 for small images: the stem does not downsample.
Json resnet18() {
  return {{"architectures", {"ResNetForImageClassification"}},
          {"model_type", "resnet"},
          {"image_size", 32},
          {"num_channels", 3},
          {"num_labels", 10},
          {"embedding_size", 64},
          {"hidden_sizes", {64, 128, 256, 512}},
          {"depths", {2, 2, 2, 2}},
          {"layer_type", "basic"},
          {"hidden_act", "relu"},
          {"heed", {{"stem", "small"}}}};
}

// Both encoders of the same sizes; the vectors that are compared are half as wide.
Json clip(Sizes sizes, int64_t tokens, int64_t image, int64_t patch) {
  Json text{{"hidden_size", sizes.width},
            {"num_hidden_layers", sizes.layers},
            {"num_attention_heads", sizes.heads},
            {"intermediate_size", sizes.wide},
            {"hidden_act", "gelu"},
            {"initializer_range", initializer_range(sizes.width)}};
  Json images = text;
  text.update({{"vocab_size", kVocabulary}, {"max_position_embeddings", tokens}});
  images.update({{"image_size", image}, {"patch_size", patch}});
  return {{"architectures", {"CLIPModel"}},
          {"model_type", "clip"},
          {"projection_dim", sizes.width / 2},
          {"text_config", text},
          {"vision_config", images}};
}

Json bert(Sizes sizes, int64_t tokens) {
  return {{"architectures", {"BertForSequenceClassification"}},
          {"model_type", "bert"},
          {"vocab_size", kVocabulary},
          {"num_labels", 2},
          {"hidden_size", sizes.width},
          {"num_hidden_layers", sizes.layers},
          {"num_attention_heads", sizes.heads},
          {"intermediate_size", sizes.wide},
          {"hidden_act", "gelu"},
          {"hidden_dropout_prob", 0.1},
          {"attention_probs_dropout_prob", 0.1},
          {"max_position_embeddings", tokens},
          {"initializer_range", initializer_range(sizes.width)},
          {"type_vocab_size", 2}};
}

// A ViT, and a BERT decoder that attends to its patches.
Json captioner(Sizes images, int64_t image, int64_t patch, Sizes text, int64_t tokens) {
  Json encoder = vit(images, image, patch), decoder = bert(text, tokens);
  for (const char* key : {"architectures", "num_labels"}) encoder.erase(key), decoder.erase(key);
  decoder.update({{"is_decoder", true}, {"add_cross_attention", true}});
  return {{"architectures", {"VisionEncoderDecoderModel"}},
          {"model_type", "vision-encoder-decoder"},
          {"is_encoder_decoder", true},
          {"tie_word_embeddings", false},
          {"encoder", encoder},
          {"decoder", decoder}};
}

Json gpt2(Sizes sizes, int64_t tokens) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", kVocabulary},
          {"n_embd", sizes.width},
          {"n_layer", sizes.layers},
          {"n_head", sizes.heads},
          {"n_inner", sizes.wide},
          {"n_positions", tokens},
          {"activation_function", "gelu_new"},
          {"resid_pdrop", 0.1},
          {"embd_pdrop", 0.1},
          {"attn_pdrop", 0.1}};
}

Json llama(Sizes sizes, int64_t key_heads, int64_t tokens) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", kVocabulary},
          {"hidden_size", sizes.width},
          {"num_hidden_layers", sizes.layers},
          {"num_attention_heads", sizes.heads},
          {"num_key_value_heads", key_heads},
          {"intermediate_size", sizes.wide},
          {"hidden_act", "silu"},
          {"max_position_embeddings", tokens},
          {"rms_norm_eps", 1e-5},
          {"tie_word_embeddings", true}};
}

Json transformer(Sizes sizes, int64_t tokens) {
  Json config = {{"architectures", {"MarianMTModel"}},
                 {"model_type", "marian"},
                 {"is_encoder_decoder", true},
                 {"vocab_size", kVocabulary},
                 {"pad_token_id", 0},
                 {"decoder_start_token_id", 0},
                 {"eos_token_id", 1},
                 {"d_model", sizes.width},
                 {"activation_function", "relu"},
                 {"dropout", 0.1},
                 {"max_position_embeddings", tokens},
                 {"scale_embedding", true},
                 {"share_encoder_decoder_embeddings", true},
                 {"tie_word_embeddings", true}};
  for (const std::string side : {"encoder", "decoder"}) {
    config[side + "_layers"] = sizes.layers;
    config[side + "_attention_heads"] = sizes.heads;
    config[side + "_ffn_dim"] = sizes.wide;
  }
  return config;
}

// A recurrent classifier of sentences; with attention over the encoder's states ("additive" or "dot"), a translator.
Json recurrent(const std::string& cell, int64_t width, int64_t layers, int64_t tokens, const std::string& attention = "") {
  Json config{{"architectures", {attention.empty() ? "RecurrentForSequenceClassification" : "RecurrentForTranslation"}},
              {"model_type", attention.empty() ? "recurrent" : "recurrent-translation"},
              {"cell", cell},
              {"vocab_size", kVocabulary},
              {"hidden_size", width},
              {"num_layers", layers},
              {"dropout", 0.1},
              {"max_position_embeddings", tokens},
              {"initializer_range", initializer_range(width)}};
  if (attention.empty()) {
    config["num_labels"] = 2;
  } else {
    config.update(
        {{"attention", attention}, {"is_encoder_decoder", true}, {"pad_token_id", 0}, {"decoder_start_token_id", 0}, {"eos_token_id", 1}});
  }
  return config;
}

using Recipe = std::vector<std::pair<std::string, std::string>>;

Recipe with(Recipe base, const Recipe& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

std::vector<Preset> make_presets() {
  const Recipe images{
      {"optimizer", "adamw"}, {"schedule", "cosine"}, {"weight_decay", "0.05"}, {"label_smoothing", "0.1"}, {"flip", "true"}};
  const Recipe convolution{{"optimizer", "sgd"},   {"rate", "0.1"},    {"momentum", "0.9"}, {"weight_decay", "1e-4"},
                           {"schedule", "cosine"}, {"warmup", "0.05"}, {"epochs", "300"},   {"batch", "100"},
                           {"pad", "4"},           {"flip", "true"}};
  const Recipe sentences{{"optimizer", "adamw"}, {"schedule", "linear"}, {"warmup", "0.1"}, {"weight_decay", "0.01"}, {"batch", "32"}};
  const Recipe captions{{"optimizer", "adamw"},   {"schedule", "cosine"}, {"warmup", "0.1"},
                        {"weight_decay", "0.05"}, {"batch", "64"},        {"epochs", "20"}};
  const Recipe language{{"optimizer", "adamw"}, {"schedule", "cosine"}, {"beta2", "0.95"}, {"weight_decay", "0.1"}, {"final_rate", "0.1"}};
  const Recipe translation{
      {"optimizer", "adam"}, {"schedule", "inverse_sqrt"}, {"beta2", "0.98"}, {"weight_decay", "0"}, {"label_smoothing", "0.1"}};
  return {
      {"vit-tiny", "vision transformer for small images: width 192, 6 layers, 4 x 4 patches", "vit", vit({192, 6, 3, 768}, 32, 4),
       with(images, {{"rate", "1e-3"}, {"batch", "64"}, {"epochs", "30"}, {"pad", "4"}})},
      {"vit-small", "larger vision transformer for small images: width 384, 12 layers", "vit", vit({384, 12, 6, 1536}, 32, 4),
       with(images, {{"rate", "1e-3"}, {"batch", "128"}, {"epochs", "100"}, {"pad", "4"}})},
      {"vit-base", "ViT-B/16 for 224 x 224 images (Dosovitskiy et al. 2021)", "vit", vit({768, 12, 12, 3072}, 224, 16),
       with(images, {{"rate", "5e-4"}, {"batch", "256"}, {"epochs", "300"}, {"pad", "16"}})},
      {"vit-tiny-experts", "vit-tiny whose feed-forward layers are 4 experts, two for each token (Shazeer et al. 2017)", "vit",
       with_experts(vit({192, 6, 3, 768}, 32, 4), 4), with(images, {{"rate", "1e-3"}, {"batch", "64"}, {"epochs", "30"}, {"pad", "4"}})},
      {"gaussian", "attention that can express convolution: 9 heads with Gaussian positions (Cordonnier et al. 2020)", "vit",
       gaussian({400, 6, 9, 512}), convolution},
      {"gaussian-small", "gaussian with 3 layers of width 128", "vit", gaussian({128, 3, 9, 256}), convolution},
      {"resnet18", "ResNet-18 for small images (He et al. 2016)", "resnet", resnet18(), convolution},
      {"clip-tiny", "CLIP for small images and short captions: width 128, 4 layers each, 6 x 6 patches", "clip",
       clip({128, 4, 4, 512}, 32, 48, 6), with(captions, {{"rate", "1e-3"}})},
      {"caption-tiny", "captions of small images: ViT and BERT decoder of width 128, 4 and 2 layers, 6 x 6 patches", "captioner",
       captioner({128, 4, 4, 512}, 48, 6, {128, 2, 4, 512}, 64), with(captions, {{"rate", "1e-3"}})},
      {"bert-mini", "BERT encoder: width 256, 4 layers", "bert", bert({256, 4, 4, 1024}, 128), with(sentences, {{"rate", "5e-4"}})},
      {"bert-small", "BERT encoder: width 512, 4 layers", "bert", bert({512, 4, 8, 2048}, 128), with(sentences, {{"rate", "3e-4"}})},
      {"bert-base", "BERT as published (Devlin et al. 2019)", "bert", bert({768, 12, 12, 3072}, 512), with(sentences, {{"rate", "1e-4"}})},
      {"lstm-small", "LSTM classifier, one layer in both directions: width 256", "recurrent", recurrent("lstm", 256, 1, 512),
       with(sentences, {{"rate", "2e-3"}})},
      {"gru-small", "the same with GRUs", "recurrent", recurrent("gru", 256, 1, 512), with(sentences, {{"rate", "2e-3"}})},
      {"gpt-mini", "GPT-2 decoder: width 256, 4 layers, 256 tokens", "gpt", gpt2({256, 4, 4, 1024}, 256),
       with(language, {{"rate", "1e-3"}, {"batch", "32"}})},
      {"gpt2", "the smallest GPT-2 (Radford et al. 2019)", "gpt", gpt2({768, 12, 12, 3072}, 1024),
       with(language, {{"rate", "6e-4"}, {"batch", "4"}, {"accumulate", "8"}})},
      {"llama-mini", "Llama decoder with grouped-query attention: width 256, 4 layers, 256 tokens", "gpt", llama({256, 4, 4, 704}, 2, 256),
       with(language, {{"rate", "1e-3"}, {"batch", "32"}})},
      {"transformer-small", "encoder-decoder for translation: width 256, 3 layers each", "encoder-decoder",
       transformer({256, 3, 4, 1024}, 256), with(translation, {{"rate", "1e-3"}, {"warmup", "0.1"}, {"batch", "64"}})},
      {"lstm-additive", "LSTM encoder-decoder with additive attention (Bahdanau et al. 2015): width 256", "encoder-decoder",
       recurrent("lstm", 256, 1, 256, "additive"), with(translation, {{"rate", "2e-3"}, {"warmup", "0.1"}, {"batch", "64"}})},
      {"lstm-dot", "LSTM encoder-decoder with dot-product attention (Luong et al. 2015): width 256", "encoder-decoder",
       recurrent("lstm", 256, 1, 256, "dot"), with(translation, {{"rate", "2e-3"}, {"warmup", "0.1"}, {"batch", "64"}})},
      {"transformer-base", "the base model of Vaswani et al. 2017", "encoder-decoder", transformer({512, 6, 8, 2048}, 512),
       with(translation, {{"rate", "7e-4"}, {"warmup", "4000"}, {"batch", "128"}})},
  };
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

const Preset& preset_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& each : presets()) {
    if (each.name == name) return each;
    names.push_back(each.name);
  }
  fail<UsageError>("preset=", quoted(name), ", expected one of ", listed(names), did_you_mean(name, names));
}

std::vector<std::string> presets_of(const std::vector<std::string>& families) {
  std::vector<std::string> out;
  for (const Preset& each : presets())
    if (std::find(families.begin(), families.end(), each.family) != families.end()) out.push_back(each.name);
  return out;
}

void apply_training_settings(const Preset& preset, Settings& settings) {
  for (const auto& [key, value] : preset.settings) settings.set(key, value, Settings::By::preset);
}

int64_t heads_for(const ModelChoice& choice) {
  const Json& config = preset_named(choice.preset).config;
  const ConfigKeys& names = architecture_of(Config(config, "preset")).family->keys;
  if (names.heads.empty()) return 0;
  const bool is_set = choice.heads > 0 || choice.model.contains(names.heads[0]) || choice.model.contains("head_dim");
  const auto most = config.at(names.heads[0]).get<int64_t>();
  if (is_set || choice.width == 0 || config.contains("head_dim") || choice.width % most == 0) return 0;
  const int64_t even = choice.width % 2 == 0 ? 2 : 1;
  int64_t heads = most;
  while (choice.width % (heads * even) != 0) --heads;
  return heads;
}

}  // namespace heed
