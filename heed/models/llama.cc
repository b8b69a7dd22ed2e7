// Llama (Touvron et al. 2023): rotary positions, RMS norms, a gated feed-forward and grouped-query attention. Mistral (Jiang et al. 2023)
// adds a sliding window, Qwen2 (Yang et al. 2024) biases of queries, keys and values, and windows in its upper layers.
#include "heed/models/architecture.h"
#include "heed/models/causal.h"
#include "heed/models/rope.h"

namespace heed {
namespace {

constexpr LayerNames kLlamaLayer{"self_attn", "input_layernorm", "mlp", "post_attention_layernorm"};

// The differences between the families, and their defaults for config.json.
struct LlamaFamily {
  std::string name, model_type;
  int64_t vocabulary, hidden_width, key_heads, positions;  // key_heads: 0: as many as heads
  // Whether queries, keys and values have a bias; the bias of the output.
  std::function<std::pair<bool, bool>(const Config& config)> biases;
  // How many tokens a layer sees, the query among them; 0: all.
  std::function<int64_t(const Config& config, int64_t layer)> window = [](const Config&, int64_t) { return 0; };
};

// A size whose value may be null, unlike an absent one.
int64_t size_or_null(const Config& config, const char* key, int64_t absent, int64_t null) {
  return config.size(key, config.json().contains(key) ? null : absent);
}

int64_t window_in(const Config& config) { return size_or_null(config, "sliding_window", 4096, 0); }

const std::vector<LlamaFamily>& llama_families() {
  static const std::vector<LlamaFamily> all{
      {"Llama", "llama", 32000, 11008, 0, 2048,
       [](const Config& config) {
         const bool bias = config.flag("attention_bias", false);
         return std::pair(bias, bias);
       }},
      {"Mistral", "mistral", 32000, 14336, 8, 131072, [](const Config&) { return std::pair(false, false); },
       [](const Config& config, int64_t) { return window_in(config); }},
      {"Qwen2", "qwen2", 151936, 22016, 32, 32768, [](const Config&) { return std::pair(true, false); },
       [](const Config& config, int64_t layer) {
         const bool slides =
             config.flag("use_sliding_window", false) && has_window(config, layer, layer >= config.size("max_window_layers", 28, 0));
         return slides ? window_in(config) : 0;
       }}};
  return all;
}

int64_t llama_positions(const Config& config, const LlamaFamily& family) { return rope_positions(config, family.positions); }

Network make_llama(const Scope& root, const Config& config, const LlamaFamily& family, CausalHead head) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", false)),
              inner = head == CausalHead::none ? scope : scope / "model";
  const bool shared = head == CausalHead::language && tied(scope, config, false, "lm_head.weight", "model.embed_tokens.weight");
  const int64_t D = config.size("hidden_size", 4096), H = config.size("num_attention_heads", 32);
  if (!config.has("head_dim") && D % H != 0) config.refuse("num_attention_heads", "a divisor of hidden_size");
  const int64_t head_width = config.size("head_dim", D / H), positions = llama_positions(config, family);
  const float eps = config.epsilon("rms_norm_eps", 1e-6f);
  const auto [bias, output_bias] = family.biases(config);
  LayerOptions options{
      .attention = {.width = D,
                    .heads = H,
                    .key_heads = size_or_null(config, "num_key_value_heads", family.key_heads == 0 ? H : family.key_heads, H),
                    .head_width = head_width,
                    .bias = bias,
                    .output_bias = output_bias,
                    .dropout = config.probability("attention_dropout", 0),
                    .names = {"q_proj", "k_proj", "v_proj", "", "o_proj"},
                    .rotary = rotary_from(config, rope_in(config), head_width, positions)},
      .feed_forward = {.hidden_width = config.size("intermediate_size", family.hidden_width),
                       .activation = config.activation("hidden_act", "silu"),
                       .gated = true,
                       .bias = config.flag("mlp_bias", false),
                       .names = {"up_proj", "gate_proj", "down_proj"}},
      .place = NormPlace::before,
      .norm = NormKind::root_mean_square,
      .eps = eps};
  const Variant variant(config, positions);
  const int64_t layers = config.size("num_hidden_layers", 32, 0);
  CausalModel model{.word_embeddings = Embedding(inner / "embed_tokens", config.size("vocab_size", family.vocabulary), D),
                    .positions = variant.added_positions(inner, D, [] { return AddedPositions(); }),
                    .layers = {},
                    .norm = Norm(inner / "norm", D, eps, NormKind::root_mean_square)};
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t window = family.window(config, i);
    options.attention.terms = window > 0 ? std::vector<Term>{Window{.before = window - 1}} : std::vector<Term>{};
    model.layers.push_back(make_encoder_layer(inner / "layers" / i, variant.apply(options, i, layers), kLlamaLayer));
  }
  add_head(model, head, scope, config, shared);
  return causal_network(model);
}

Family llama_traits(const LlamaFamily& family) {
  return {.model_type = family.model_type,
          .base = "model",
          .tokens = true,
          .causal = true,
          .positions = [&family](const Config& config) { return llama_positions(config, family); },
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
                            "sliding_window", "use_sliding_window", "max_window_layers", "layer_types", "bos_token_id", "eos_token_id",
                            "pad_token_id"}},
          .ignored = {"rotary_emb.inv_freq"}};  // in old checkpoints; heed computes it
}

}  // namespace

Architectures llama_architectures() {
  Architectures all;
  for (const LlamaFamily& family : llama_families()) {
    const auto with = [&family](CausalHead head) {
      return [&family, head](const Scope& scope, const Config& config) { return make_llama(scope, config, family, head); };
    };
    const Architectures more =
        of_family(llama_traits(family),
                  {{family.name + "Model", ModelTask::features, with(CausalHead::none)},
                   {family.name + "ForCausalLM", ModelTask::causal_lm, with(CausalHead::language)},
                   {family.name + "ForSequenceClassification", ModelTask::sequence_classification, with(CausalHead::classifier)}});
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace heed
