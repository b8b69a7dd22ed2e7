// Llama (Touvron et al. 2023): rotary positions, RMS norms, a gated feed-forward and grouped-query attention.
#include <cmath>
#include <numbers>

#include "heed/models/architecture.h"
#include "heed/models/causal.h"

namespace heed {
namespace {

constexpr int64_t kWidestHead = 65536;
constexpr double kLeastTheta = 1, kMostTheta = 1e12;      // of rope_theta
constexpr double kLeastFactor = 1e-3, kMostFactor = 1e6;  // of rope_scaling
constexpr LayerNames kLlamaLayer{"self_attn", "input_layernorm", "mlp", "post_attention_layernorm"};

int64_t llama_positions(const Config& config) { return config.size("max_position_embeddings", 2048); }

// Llama 3.1 (Grattafiori et al. 2024): low frequencies are divided by a factor, high ones are unchanged, those between interpolated.
void scale_low_frequencies(std::vector<double>& frequencies, const Config& rope, int64_t positions) {
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor"})
    if (!rope.has(key)) rope.refuse(key, "a number");
  const auto number = [&](const char* key) { return rope.number(key, 1, kLeastFactor, kMostFactor); };
  const double factor = number("factor"), low = number("low_freq_factor"), high = number("high_freq_factor");
  if (!(high > low)) rope.refuse("high_freq_factor", "more than low_freq_factor");
  const auto before = static_cast<double>(rope.size("original_max_position_embeddings", positions));
  for (double& frequency : frequencies) {
    const double periods = before * frequency / (2 * std::numbers::pi);  // within the original context length
    const double share = std::clamp((periods - low) / (high - low), 0.0, 1.0);
    frequency = (1 - share) * frequency / factor + share * frequency;
  }
}

Rotary make_rotary(const Config& config, int64_t D) {
  const int64_t positions = llama_positions(config);
  const Config rope = config.below(config.has("rope_scaling") ? "rope_scaling" : "rope_parameters");
  rope.only("partial_rotary_factor", 1);
  config.only("partial_rotary_factor", 1);
  const float base = rope.number("rope_theta", config.number("rope_theta", 10000, kLeastTheta, kMostTheta), kLeastTheta, kMostTheta);
  const char* key = rope.has("rope_type") ? "rope_type" : "type";  // "type" in older files
  const std::string kind = rope.string(key, "default");
  if (D % 2 != 0 || D > kWidestHead) config.refuse("head_dim", "an even number of at most " + std::to_string(kWidestHead));
  std::vector<double> frequencies;
  for (int64_t i = 0; i < D / 2; ++i) frequencies.push_back(1 / std::pow(base, 2 * static_cast<float>(i) / static_cast<float>(D)));
  if (kind == "linear") {
    if (!rope.has("factor")) rope.refuse("factor", "a number");
    for (double& frequency : frequencies) frequency /= rope.number("factor", 1, kLeastFactor, kMostFactor);
  } else if (kind == "llama3") {
    scale_low_frequencies(frequencies, rope, positions);
  } else if (kind != "default") {
    rope.refuse(key, "default, linear or llama3");
  }
  return {positions, D, {.pairing = Pairing::halves, .frequencies = frequencies, .rounded = true}};
}

Network make(const Scope& root, const Config& config, bool head) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", false)), inner = head ? scope / "model" : scope;
  const bool shared = head && tied(scope, config, false, "lm_head.weight", "model.embed_tokens.weight");
  const int64_t D = config.size("hidden_size", 4096), H = config.size("num_attention_heads", 32);
  if (D % H != 0) config.refuse("num_attention_heads", "a divisor of hidden_size");
  const int64_t head_width = config.size("head_dim", D / H);
  const float eps = config.epsilon("rms_norm_eps", 1e-6f);
  const bool bias = config.flag("attention_bias", false);
  const LayerOptions options{.attention = {.width = D,
                                           .heads = H,
                                           .key_heads = config.size("num_key_value_heads", H),
                                           .head_width = head_width,
                                           .bias = bias,
                                           .output_bias = bias,
                                           .dropout = config.probability("attention_dropout", 0),
                                           .names = {"q_proj", "k_proj", "v_proj", "", "o_proj"},
                                           .rotary = make_rotary(config, head_width)},
                             .feed_forward = {.hidden_width = config.size("intermediate_size", 11008),
                                              .activation = config.activation("hidden_act", "silu"),
                                              .gated = true,
                                              .bias = config.flag("mlp_bias", false),
                                              .names = {"up_proj", "gate_proj", "down_proj"}},
                             .place = NormPlace::before,
                             .norm = NormKind::root_mean_square,
                             .eps = eps};
  const Variant variant(config, llama_positions(config));
  const int64_t layers = config.size("num_hidden_layers", 32, 0);
  CausalModel model{.word_embeddings = Embedding(inner / "embed_tokens", config.size("vocab_size", 32000), D),
                    .positions = variant.added_positions(inner, D, [] { return AddedPositions(); }),
                    .layers = {},
                    .norm = Norm(inner / "norm", D, eps, NormKind::root_mean_square),
                    .head = {}};
  for (int64_t i = 0; i < layers; ++i)
    model.layers.push_back(make_encoder_layer(inner / "layers" / i, variant.apply(options, i, layers), kLlamaLayer));
  if (head) model.head = language_head(scope, model.word_embeddings, shared);
  return causal_network(model);
}

}  // namespace

Architectures llama_architectures() {
  const auto with = [](bool head) { return [=](const Scope& scope, const Config& config) { return make(scope, config, head); }; };
  return of_family({.model_type = "llama",
                    .base = "model",
                    .tokens = true,
                    .causal = true,
                    .positions = llama_positions,
                    .word_tables = {"embed_tokens.weight"},
                    .default_position = "rotary",
                    .keys = {.layers = {"num_hidden_layers"},
                             .heads = {"num_attention_heads", "num_key_value_heads"},
                             .width = {"hidden_size"},
                             .feed_forward = {"intermediate_size"},
                             .activation = {"hidden_act"},
                             .dropout = {"attention_dropout"},
                             .positions = "max_position_embeddings",
                             .more = {"vocab_size", "head_dim", "rms_norm_eps", "attention_bias", "mlp_bias", "rope_theta", "rope_scaling",
                                      "bos_token_id", "eos_token_id", "pad_token_id"}},
                    .ignored = {"rotary_emb.inv_freq"}},  // in old checkpoints; heed computes it
                   {{"LlamaModel", ModelTask::features, with(false)}, {"LlamaForCausalLM", ModelTask::causal_lm, with(true)}});
}

}  // namespace heed
