// ModernBERT (Warner et al. 2024): a pre-norm encoder with rotary positions and GeGLU, where most layers see a window and every third
// sees all tokens, with other rotary frequencies. Few layers have a bias.
#include <algorithm>
#include <cmath>

#include "heed/models/architecture.h"
#include "heed/models/text_encoder.h"

namespace heed {
namespace {

constexpr LayerNames kModernBertLayer{"attn", "attn_norm", "mlp", "mlp_norm"};

int64_t modernbert_positions(const Config& config) { return config.size("max_position_embeddings", 8192); }

NormKind modernbert_norm(const Config& config) { return config.flag("norm_bias", false) ? NormKind::layer : NormKind::layer_without_bias; }

void refuse_other_keys(const Config& config, std::initializer_list<std::string_view> known, const char* expected) {
  for (const auto& [key, value] : config.json().items())
    if (config.has(key) && std::find(known.begin(), known.end(), key) == known.end()) config.refuse(key, expected);
}

// Older files have global_rope_theta and local_rope_theta, newer ones an object for each type of layer. Scalings are not supported.
Rotary modernbert_rotary(const Config& config, int64_t D, bool local) {
  const Config both = config.below("rope_parameters"), rope = both.below(local ? "sliding_attention" : "full_attention"),
               older = config.below("rope_scaling");
  refuse_other_keys(both, {"full_attention", "sliding_attention"}, "an object full_attention and an object sliding_attention only");
  rope.only("rope_type", "default");
  refuse_other_keys(rope, {"rope_type", "rope_theta"}, "rope_type and rope_theta only");
  for (const char* key : {"rope_type", "type"}) older.only(key, "default");
  refuse_other_keys(older, {"rope_type", "type"}, "no scaling of rotary positions");
  const float fallback = local ? config.number("local_rope_theta", 10000) : config.number("global_rope_theta", 160000);
  return {
      modernbert_positions(config), D, {.pairing = Pairing::halves, .base = rope.number("rope_theta", fallback, 1, 1e12), .rounded = true}};
}

TextEncoder make_modernbert(const Scope& scope, const Config& config) {
  const int64_t D = config.size("hidden_size", 768), H = config.size("num_attention_heads", 12);
  if (D % H != 0) config.refuse("num_attention_heads", "a divisor of hidden_size");
  const int64_t layers = config.size("num_hidden_layers", 22, 0), every = config.size("global_attn_every_n_layers", 3);
  const int64_t window = config.size("local_attention", 128) / 2;  // before and after a token
  const float eps = config.epsilon("norm_eps", 1e-5f);
  const NormKind norm = modernbert_norm(config);
  const bool bias = config.flag("attention_bias", false);
  LayerOptions options{.attention = {.width = D,
                                     .heads = H,
                                     .fused = true,
                                     .bias = bias,
                                     .output_bias = bias,
                                     .dropout = config.probability("attention_dropout", 0),
                                     .names = {.qkv = "Wqkv", .output = "Wo"}},
                       .feed_forward = {.hidden_width = config.size("intermediate_size", 1152),
                                        .activation = config.activation("hidden_activation", "gelu"),
                                        .gated = true,
                                        .fused = true,
                                        .bias = config.flag("mlp_bias", false),
                                        .dropout = config.probability("mlp_dropout", 0),
                                        .names = {.up = "Wi", .down = "Wo"}},
                       .place = NormPlace::before,
                       .norm = norm,
                       .eps = eps};
  const Variant variant(config, modernbert_positions(config));
  TextEncoder encoder{.word_embeddings = Embedding(scope / "embeddings.tok_embeddings", config.size("vocab_size", 50368), D),
                      .positions = variant.added_positions(scope / "embeddings", D, [] { return AddedPositions(); }),
                      .norm = Norm(scope / "embeddings.norm", D, eps, norm),
                      .last = final_norm(scope / "final_norm", variant.apply(options)),
                      .dropout = config.probability("embedding_dropout", 0)};
  for (int64_t i = 0; i < layers; ++i) {
    const bool local = has_window(config, i, i % every != 0);
    options.attention.rotary = modernbert_rotary(config, D / H, local);
    options.attention.terms = local ? std::vector<Term>{Window{.before = window, .after = window}} : std::vector<Term>{};
    LayerOptions own = variant.apply(options, i, layers);
    own.attention_norm = i > 0 || own.place == NormPlace::after;  // the embeddings have a norm already
    encoder.layers.push_back(make_encoder_layer(scope / "layers" / i, own, kModernBertLayer));
  }
  return encoder;
}

Scope initialized_modernbert(const Scope& root, const Config& config) {
  Initializers initializers = initializer_from(config, "initializer_range", true);
  const auto layers = static_cast<float>(std::max<int64_t>(config.size("num_hidden_layers", 22, 0), 1));
  initializers.residual = initializer::truncated_normal(config.number("initializer_range", 0.02f, 0, 100) / std::sqrt(2 * layers));
  return root.with(initializers);
}

// The part that all heads begin with; its decoder is not set.
TokenHead modernbert_head(const Scope& scope, const Config& config, int64_t D) {
  return {.transform = Linear(scope / "head.dense", D, D, {.bias = config.flag("classifier_bias", false)}),
          .norm = Norm(scope / "head.norm", D, config.epsilon("norm_eps", 1e-5f), modernbert_norm(config)),
          .activation = config.activation("classifier_activation", "gelu")};
}

Network modernbert_inner(const Scope& root, const Config& config) {
  const auto head = [](const HeadInput& in, TensorMap& out) { out["last_hidden_state"] = in.x; };
  return text_network(make_modernbert(initialized_modernbert(root, config), config), Reads::all, head, {});
}

Network modernbert_masked(const Scope& root, const Config& config) {
  config.only("sparse_prediction", false);
  const Scope scope = initialized_modernbert(root, config), decoder = scope / "decoder";
  const bool shared = tied(scope, config, true, "decoder.weight", "model.embeddings.tok_embeddings.weight");
  const bool bias = config.flag("decoder_bias", true);
  const TextEncoder encoder = make_modernbert(scope / "model", config);
  const int64_t V = encoder.word_embeddings.weight.size(0), D = encoder.width();
  TokenHead head = modernbert_head(scope, config, D);
  head.decoder = shared ? Linear(decoder, encoder.word_embeddings.weight,
                                 bias ? decoder.get("bias", {V}, initializer::zeros(), {.decays = false}) : Tensor())
                        : Linear(decoder, D, V, {.bias = bias, .weight = scope.initializer().residual});
  return text_network(encoder, Reads::labelled, masked_tokens(head));
}

// Sentences are the first token or the mean of all: classifier_pooling, which heed.pooling overrides.
Pool modernbert_pool(const Scope& scope, const Config& config, int64_t D) {
  if (config.below("heed").has("pooling"))
    return Variant(config, 0).pool(scope / "pooling", {.attention = {.width = D, .heads = config.size("num_attention_heads", 12)}});
  const std::string name = config.string("classifier_pooling", "cls");
  if (name != "cls" && name != "mean") config.refuse("classifier_pooling", "cls or mean");
  return {.kind = name == "cls" ? Pooling::class_token : Pooling::mean};
}

Network modernbert_sentences(const Scope& root, const Config& config) {
  const Scope scope = initialized_modernbert(root, config);
  const TextEncoder encoder = make_modernbert(scope / "model", config);
  const int64_t D = encoder.width();
  const Pool pool = modernbert_pool(scope, config, D);
  const auto pooled = [head = modernbert_head(scope, config, D), sentence = pooled_by(pool)](const HeadInput& in) {
    return head.states(sentence(in));
  };
  const Linear linear(scope / "classifier", D, config.labels());
  return text_network(encoder, reads_of(pool), sequence_classes(pooled, linear, config.probability("classifier_dropout", 0), config));
}

Network modernbert_tokens(const Scope& root, const Config& config) {
  const Scope scope = initialized_modernbert(root, config);
  const TextEncoder encoder = make_modernbert(scope / "model", config);
  const TokenHead head = modernbert_head(scope, config, encoder.width());
  const Linear linear(scope / "classifier", encoder.width(), config.labels());
  const Head classes = token_classes(linear, config.probability("classifier_dropout", 0));
  return text_network(encoder, Reads::all, [=](const HeadInput& in, TensorMap& out) {
    classes({in.inputs, in.options, head.states(in.x), in.labels}, out);
  });
}

}  // namespace

Architectures modernbert_architectures() {
  return of_family({.model_type = "modernbert",
                    .base = "model",
                    .tokens = true,
                    .positions = modernbert_positions,
                    .word_tables = {"embeddings.tok_embeddings.weight"},
                    .default_position = "rotary",
                    .keys = {.layers = {"num_hidden_layers"},
                             .heads = {"num_attention_heads"},
                             .width = {"hidden_size"},
                             .feed_forward = {"intermediate_size"},
                             .activation = {"hidden_activation"},
                             .dropout = {"attention_dropout", "mlp_dropout", "embedding_dropout"},
                             .positions = "max_position_embeddings",
                             .more = {"vocab_size", "norm_eps", "norm_bias", "attention_bias", "mlp_bias", "decoder_bias",
                                      "classifier_bias", "classifier_pooling", "classifier_dropout", "classifier_activation",
                                      "local_attention", "global_attn_every_n_layers", "layer_types", "rope_parameters",
                                      "global_rope_theta", "local_rope_theta", "pad_token_id", "cls_token_id", "sep_token_id"}}},
                   {{"ModernBertModel", ModelTask::features, modernbert_inner},
                    {"ModernBertForMaskedLM", ModelTask::masked_lm, modernbert_masked},
                    {"ModernBertForSequenceClassification", ModelTask::sequence_classification, modernbert_sentences},
                    {"ModernBertForTokenClassification", ModelTask::token_classification, modernbert_tokens}});
}

}  // namespace heed
