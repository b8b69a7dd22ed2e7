// T5 (Raffel et al. 2020): an encoder-decoder without absolute positions. The first layer of each side has a table of biases for buckets of
// distances, which the other layers share. Scores are not scaled, norms are RMS norms, no layer has a bias.
#include <cmath>

#include "heed/models/architecture.h"
#include "heed/models/encoder_decoder.h"

namespace heed {
namespace {

constexpr LayerNames kT5Encoder{"layer.0.SelfAttention", "layer.0.layer_norm", "layer.1.DenseReluDense", "layer.1.layer_norm"};
constexpr LayerNames kT5Decoder{"layer.0.SelfAttention", "layer.0.layer_norm",      "layer.2.DenseReluDense",
                                "layer.2.layer_norm",    "layer.1.EncDecAttention", "layer.1.layer_norm"};

// Deviations of weights: factor / sqrt(inputs). Queries are smaller instead of being scaled.
float t5_deviation(const Config& config, int64_t inputs) {
  return config.number("initializer_factor", 1, 0, 100) / std::sqrt(static_cast<float>(inputs));
}

Initializers t5_initializers(const Config& config) {
  const int64_t D = config.size("d_model", 512);
  const Initializer weight = initializer::normal(t5_deviation(config, D));
  return {.weight = weight,
          .residual = initializer::normal(t5_deviation(config, config.size("d_ff", 2048))),
          .embedding = initializer::normal(t5_deviation(config, 1)),
          .patch = weight,
          .position = weight};
}

// "relu", or "gated-" and an activation, as in T5 1.1; its gelu is the approximation by tanh.
FeedForwardOptions t5_feed_forward(const Config& config) {
  const std::string kind = config.string("feed_forward_proj", "relu"), prefix = "gated-";
  const bool gated = kind.starts_with(prefix);
  const std::string name = gated ? kind.substr(prefix.size()) : kind;
  FeedForwardOptions out{.hidden_width = config.size("d_ff", 2048),
                         .gated = gated,
                         .bias = false,
                         .dropout = config.probability("dropout_rate", 0.1f),
                         .names = {.up = gated ? "wi_1" : "wi", .gate = "wi_0", .down = "wo"}};
  try {
    out.activation = activation_named(gated && name == "gelu" ? "gelu_new" : name);
  } catch (const Error&) {
    config.refuse("feed_forward_proj", "an activation, or gated- and an activation");
  }
  return out;
}

LayerOptions t5_options(const Config& config) {
  const int64_t D = config.size("d_model", 512), head_width = config.size("d_kv", 64);
  return {.attention = {.width = D,
                        .heads = config.size("num_heads", 8),
                        .head_width = head_width,
                        .bias = false,
                        .output_bias = false,
                        .dropout = config.probability("dropout_rate", 0.1f),
                        .query = initializer::normal(t5_deviation(config, D * head_width)),
                        .names = {"q", "k", "v", "", "o"}},
          .feed_forward = t5_feed_forward(config),
          .place = NormPlace::before,
          .norm = NormKind::root_mean_square,
          .eps = config.epsilon("layer_norm_epsilon", 1e-6f),
          .branch = {.dropout = config.probability("dropout_rate", 0.1f)}};
}

// The biases of one side; files store the table as (buckets, H). side: "encoder" or "decoder"
Term t5_bias(const Scope& side, const Config& config, bool both_ways) {
  const Shape shape{config.size("num_heads", 8), config.size("relative_attention_num_buckets", 32, 2)};
  const Scope scope = side / "block.0.layer.0.SelfAttention.relative_attention_bias";
  return BucketedBias{.table = scope.get("weight", shape, scope.initializer().position, {.decays = false, .stored_transposed = true}),
                      .both_ways = both_ways,
                      .far = config.size("relative_attention_max_distance", 128, 2)};
}

EncoderDecoder make_t5(const Scope& scope, const Config& config, bool encoder_only) {
  const int64_t D = config.size("d_model", 512), V = config.size("vocab_size", 32128);
  const Variant variant(config, config.size("n_positions", 512));
  for (const char* other : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}) scope.params().alias(other, "shared.weight");
  const bool shared = !scope.params().file_differs("lm_head.weight", "shared.weight");  // whatever tie_word_embeddings says
  if (shared) scope.params().alias("lm_head.weight", "shared.weight");
  EncoderDecoder t5;
  t5.source.word_embeddings = t5.target.word_embeddings = Embedding(scope / "shared", V, D);
  if (!encoder_only) t5.head = language_head(scope, t5.target.word_embeddings, shared);
  if (config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", true))) t5.head_scale = 1 / std::sqrt(static_cast<float>(D));
  t5.pad = config.size("pad_token_id", 0, 0);
  t5.start = config.size("decoder_start_token_id", t5.pad, 0);
  const int64_t encoder_layers = config.size("num_layers", 6, 0), decoder_layers = config.size("num_decoder_layers", encoder_layers, 0);
  LayerOptions options = t5_options(config);
  for (TextSide* side : {&t5.source, &t5.target}) {
    const bool encoder = side == &t5.source;
    if (encoder_only && !encoder) break;
    const Scope inner = scope / (encoder ? "encoder" : "decoder");
    const int64_t layers = encoder ? encoder_layers : decoder_layers;
    side->positions = variant.added_positions(inner, D, [] { return AddedPositions(); });
    side->last = final_norm(inner / "final_layer_norm", variant.apply(options));
    side->dropout = side->final_dropout = options.branch.dropout;
    options.attention.terms.clear();
    if (!variant.replaces_positions() && layers > 0) options.attention.terms = {t5_bias(inner, config, encoder)};
    for (int64_t i = 0; i < layers; ++i) {
      const LayerOptions own = variant.apply(options, i, layers);
      const Scope block = inner / "block" / i;
      if (encoder) {
        t5.encoder.push_back(make_encoder_layer(block, own, kT5Encoder));
        t5.encoder.back().attention.beta = 1;
      } else {
        t5.decoder.push_back(make_decoder_layer(block, own, kT5Decoder));
        t5.decoder.back().self_attention.beta = t5.decoder.back().cross_attention.beta = 1;
      }
    }
  }
  return t5;
}

Network make_t5_encoder(const Scope& root, const Config& config) {
  const EncoderDecoder t5 = make_t5(root.with(t5_initializers(config)), config, true);
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                out["last_hidden_state"] = t5.encode(inputs, options, out, "");
                return out;
              },
          .inputs = {"input_ids", "attention_mask"}};
}

}  // namespace

Architectures t5_architectures() {
  const auto make = [](const Scope& root, const Config& config) {
    return encoder_decoder_network(make_t5(root.with(t5_initializers(config)), config, false));
  };
  return of_family(
      {.model_type = "t5",
       .tokens = true,
       .causal = true,
       .encoder_decoder = true,
       .word_tables = {"shared.weight"},
       .default_position = "bucketed",
       .keys = {.layers = {"num_layers", "num_decoder_layers"},
                .heads = {"num_heads"},
                .width = {"d_model"},
                .feed_forward = {"d_ff"},
                .activation = {"feed_forward_proj"},
                .dropout = {"dropout_rate"},
                .more = {"vocab_size", "d_kv", "relative_attention_num_buckets", "relative_attention_max_distance", "layer_norm_epsilon",
                         "initializer_factor", "scale_decoder_outputs", "pad_token_id", "decoder_start_token_id", "eos_token_id"}},
       .ignored = {"EncDecAttention.relative_attention_bias"}},
      {{"T5EncoderModel", ModelTask::features, make_t5_encoder}, {"T5ForConditionalGeneration", ModelTask::seq2seq_lm, make}});
}

}  // namespace heed
