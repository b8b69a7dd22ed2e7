// GPT-2 (Radford et al. 2019): a pre-norm decoder with learned positions.
#include <cmath>

#include "heed/models/architecture.h"
#include "heed/models/causal.h"

namespace heed {
namespace {

constexpr LayerNames kGpt2Layer{"attn", "ln_1", "mlp", "ln_2"};

int64_t gpt2_positions(const Config& config) { return config.size("n_positions", 1024); }

Initializers gpt2_initializers(const Config& config, int64_t layers) {
  Initializers out = initializer_from(config, "initializer_range", false);
  out.residual = initializer::normal(config.number("initializer_range", 0.02f, 0, 100) /
                                     std::sqrt(2 * static_cast<float>(std::max<int64_t>(layers, 1))));
  return out;
}

Network make_gpt2(const Scope& root, const Config& config, CausalHead head) {
  config.only("add_cross_attention", false);
  const int64_t D = config.size("n_embd", 768), H = config.size("n_head", 12), layers = config.size("n_layer", 12, 0);
  const Scope scope = root.with(gpt2_initializers(config, layers)), inner = head == CausalHead::none ? scope : scope / "transformer";
  const bool shared = head == CausalHead::language && tied(scope, config, true, "lm_head.weight", "transformer.wte.weight");
  const float eps = config.epsilon("layer_norm_epsilon", 1e-5f);
  const LayerOptions options{.attention = {.width = D,
                                           .heads = H,
                                           .fused = true,
                                           .dropout = config.probability("attn_pdrop", 0.1f),
                                           .stored_transposed = true,
                                           .names = {.qkv = "c_attn", .output = "c_proj"}},
                             .feed_forward = {.hidden_width = config.size("n_inner", 4 * D),
                                              .activation = config.activation("activation_function", "gelu_new"),
                                              .stored_transposed = true,
                                              .names = {.up = "c_fc", .down = "c_proj"}},
                             .place = NormPlace::before,
                             .eps = eps,
                             .branch = {.dropout = config.probability("resid_pdrop", 0.1f)}};
  const int64_t tokens = gpt2_positions(config);
  const Variant variant(config, tokens);
  CausalModel model{
      .word_embeddings = Embedding(inner / "wte", config.size("vocab_size", 50257), D),
      .positions = variant.added_positions(inner, D, [&] { return AddedPositions{LearnedPositions(inner / "wpe", tokens, D).weight}; }),
      .layers = {},
      .norm = Norm(inner / "ln_f", D, eps),
      .dropout = config.probability("embd_pdrop", 0.1f)};
  const bool scaled = config.flag("scale_attn_weights", true), by_layer = config.flag("scale_attn_by_inverse_layer_idx", false);
  for (int64_t i = 0; i < layers; ++i) {
    model.layers.push_back(make_encoder_layer(inner / "h" / i, variant.apply(options, i, layers), kGpt2Layer));
    const float width = scaled ? static_cast<float>(D / H) : 1;
    model.layers.back().attention.beta = 1 / (std::sqrt(width) * static_cast<float>(by_layer ? i + 1 : 1));
  }
  add_head(model, head, scope, config, shared);
  return causal_network(model);
}

}  // namespace

Architectures gpt2_architectures() {
  const auto with = [](CausalHead head) {
    return [=](const Scope& scope, const Config& config) { return make_gpt2(scope, config, head); };
  };
  return of_family({.model_type = "gpt2",
                    .base = "transformer",
                    .tokens = true,
                    .causal = true,
                    .positions = gpt2_positions,
                    .word_tables = {"wte.weight"},
                    .position_table = "wpe.weight",
                    .default_position = "learned",
                    .keys = {.layers = {"n_layer"},
                             .heads = {"n_head"},
                             .width = {"n_embd"},
                             .feed_forward = {"n_inner"},
                             .activation = {"activation_function"},
                             .dropout = {"resid_pdrop", "embd_pdrop", "attn_pdrop"},
                             .positions = "n_positions",
                             .more = {"vocab_size", "layer_norm_epsilon", "scale_attn_weights", "scale_attn_by_inverse_layer_idx",
                                      "bos_token_id", "eos_token_id", "pad_token_id"}},
                    .ignored = {".attn.bias", ".attn.masked_bias"}},  // causal masks in old checkpoints
                   {{"GPT2Model", ModelTask::features, with(CausalHead::none)},
                    {"GPT2LMHeadModel", ModelTask::causal_lm, with(CausalHead::language)},
                    {"GPT2ForSequenceClassification", ModelTask::sequence_classification, with(CausalHead::classifier)}});
}

}  // namespace heed
