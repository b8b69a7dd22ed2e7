// Llama (Touvron et al. 2023): rotary positions, RMS norms, a gated feed-forward and grouped-query attention.
#include "heed/models/architecture.h"
#include "heed/models/causal.h"
#include "heed/models/rope.h"

namespace heed {
namespace {

constexpr LayerNames kLlamaLayer{"self_attn", "input_layernorm", "mlp", "post_attention_layernorm"};

int64_t llama_positions(const Config& config) { return rope_positions(config, 2048); }

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
                                           .rotary = rotary_from(config, rope_in(config), head_width, llama_positions(config))},
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
                                      "partial_rotary_factor", "bos_token_id", "eos_token_id", "pad_token_id"}},
                    .ignored = {"rotary_emb.inv_freq"}},  // in old checkpoints; heed computes it
                   {{"LlamaModel", ModelTask::features, with(false)}, {"LlamaForCausalLM", ModelTask::causal_lm, with(true)}});
}

}  // namespace heed
