// The encoder-decoder of Vaswani et al. 2017 as in Marian (Junczys-Dowmunt et al. 2018): post-norm layers, sinusoidal positions with
// all sines first, embeddings that may be shared by encoder, decoder and output.
#include <cmath>

#include "heed/models/architecture.h"
#include "heed/models/encoder_decoder.h"

namespace heed {
namespace {

constexpr LayerNames kEncoder{"self_attn", "self_attn_layer_norm", "", "final_layer_norm"};
constexpr LayerNames kDecoder{"self_attn", "self_attn_layer_norm", "", "final_layer_norm", "encoder_attn", "encoder_attn_layer_norm"};

LayerOptions marian_layer_options(const Config& config, int64_t D, const std::string& side) {
  return {.attention = {.width = D,
                        .heads = config.size(side + "_attention_heads", 16),
                        .dropout = config.probability("attention_dropout", 0),
                        .names = {"q_proj", "k_proj", "v_proj", "", "out_proj"}},
          .feed_forward = {.hidden_width = config.size(side + "_ffn_dim", 4096),
                           .activation = config.activation("activation_function", "gelu"),
                           .dropout = config.probability("activation_dropout", 0),
                           .names = {.up = "fc1", .down = "fc2"}},
          .branch = {.dropout = config.probability("dropout", 0.1f)}};
}

// Computed unless the checkpoint contains them.
AddedPositions positions_of(const Scope& scope, int64_t P, int64_t D) {
  const auto sines = [](const Shape& shape, Rng&) { return sinusoidal_positions(shape[0], shape[1], Pairing::halves); };
  if (scope.params().file_has(scope.path() + ".embed_positions.weight"))
    return {.table = scope.get("embed_positions.weight", {P, D}, sines, {.learned = false, .decays = false})};
  return {.computed = sinusoidal_table(P, D, Pairing::halves)};
}

int64_t marian_positions(const Config& config) { return config.size("max_position_embeddings", 1024); }

EncoderDecoder make_marian(const Scope& scope, const Config& config) {
  for (const char* key : {"normalize_before", "normalize_embedding", "add_final_layer_norm", "tie_encoder_decoder"})
    config.only(key, false);
  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"}) config.only(key, 0);
  config.only("static_position_embeddings", true);
  const int64_t D = config.size("d_model", 1024), V = config.size("vocab_size", 58101), P = marian_positions(config);
  const bool shared = config.flag("share_encoder_decoder_embeddings", true), tie = config.flag("tie_word_embeddings", true);
  const int64_t W = shared ? V : config.size("decoder_vocab_size", V);
  const Scope inner = scope / "model", encoder = inner / "encoder", decoder = inner / "decoder";
  const std::string tied_name = shared ? "model.shared.weight" : "model.decoder.embed_tokens.weight";
  EncoderDecoder marian;
  if (tie) {
    for (const char* other : {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"})
      if (shared) scope.params().alias(other, tied_name);
    scope.params().alias("lm_head.weight", tied_name);
  }
  if (shared && !tie)
    inner.get("shared.weight", {V, D}, scope.initializer().embedding, {.learned = false});  // unused, kept for other programs
  marian.source.word_embeddings = tie && shared ? Embedding(inner / "shared", V, D) : Embedding(encoder / "embed_tokens", V, D);
  marian.target.word_embeddings = tie && shared ? marian.source.word_embeddings : Embedding(decoder / "embed_tokens", W, D);
  marian.head = language_head(scope, marian.target.word_embeddings, tie);
  if (scope.params().file_names().empty() || scope.params().file_has("final_logits_bias"))
    marian.head.bias = reshape(scope.get("final_logits_bias", {1, W}, initializer::zeros(), {.learned = false, .decays = false}), {-1});
  const Variant variant(config, P);
  marian.source.positions = variant.added_positions(encoder, D, [&] { return positions_of(encoder, P, D); });
  marian.target.positions = variant.added_positions(decoder, D, [&] { return positions_of(decoder, P, D); });
  const LayerOptions encoder_options = marian_layer_options(config, D, "encoder"),
                     decoder_options = marian_layer_options(config, D, "decoder");
  marian.source.last = final_norm(encoder / "layer_norm", variant.apply(encoder_options));
  marian.target.last = final_norm(decoder / "layer_norm", variant.apply(decoder_options));
  for (TextSide* side : {&marian.source, &marian.target}) {
    side->scale = config.flag("scale_embedding", false) ? std::sqrt(static_cast<float>(D)) : 1;
    side->dropout = config.probability("dropout", 0.1f);
  }
  const int64_t encoder_layers = config.size("encoder_layers", 12, 0), decoder_layers = config.size("decoder_layers", 12, 0);
  for (int64_t i = 0; i < encoder_layers; ++i)
    marian.encoder.push_back(make_encoder_layer(encoder / "layers" / i, variant.apply(encoder_options, i, encoder_layers), kEncoder));
  for (int64_t i = 0; i < decoder_layers; ++i)
    marian.decoder.push_back(make_decoder_layer(decoder / "layers" / i, variant.apply(decoder_options, i, decoder_layers), kDecoder));
  marian.pad = config.size("pad_token_id", 58100, 0);
  marian.start = config.size("decoder_start_token_id", 58100, 0);
  return marian;
}

}  // namespace

Architectures marian_architectures() {
  const auto make = [](const Scope& root, const Config& config) {
    return encoder_decoder_network(make_marian(root.with(initializer_from(config, "init_std", false)), config));
  };
  return of_family({.model_type = "marian",
                    .base = "model",
                    .tokens = true,
                    .causal = true,
                    .encoder_decoder = true,
                    .positions = marian_positions,
                    .word_tables = {"shared.weight", "encoder.embed_tokens.weight"},
                    .default_position = "sinusoidal",
                    .norm = "after",
                    .keys = {.layers = {"encoder_layers", "decoder_layers"},
                             .heads = {"encoder_attention_heads", "decoder_attention_heads"},
                             .width = {"d_model"},
                             .feed_forward = {"encoder_ffn_dim", "decoder_ffn_dim"},
                             .activation = {"activation_function"},
                             .dropout = {"dropout"},
                             .positions = "max_position_embeddings",
                             .more = {"vocab_size", "decoder_vocab_size", "share_encoder_decoder_embeddings", "scale_embedding", "init_std",
                                      "attention_dropout", "activation_dropout", "pad_token_id", "decoder_start_token_id", "bos_token_id",
                                      "eos_token_id"}}},
                   {{"MarianMTModel", ModelTask::seq2seq_lm, make}});
}

}  // namespace heed
