// The encoder-decoder of Vaswani et al. 2017 as in Marian (Junczys-Dowmunt et al. 2018): post-norm layers, sinusoidal positions with
// all sines first, embeddings that may be shared by encoder, decoder and output.
#include <cmath>

#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/decoder.h"

namespace heed {
namespace {

constexpr LayerNames kEncoder{"self_attn", "self_attn_layer_norm", "", "final_layer_norm"};
constexpr LayerNames kDecoder{"self_attn", "self_attn_layer_norm", "", "final_layer_norm", "encoder_attn", "encoder_attn_layer_norm"};

int64_t marian_positions(const Config& config) { return config.size("max_position_embeddings", 1024); }

// Embeddings and final norm of the encoder or the decoder.
struct Side {
  Embedding word_embeddings;
  AddedPositions positions;
  Norm last;  // final norm of pre-norm layers
  float scale, dropout;

  Tensor operator()(const Tensor& tokens, Mode mode, int64_t first = 0) const {  // (B, N) -> (B, N, D)
    return heed::dropout(positions(word_embeddings(tokens) * scale, {}, first), dropout, mode);
  }
};

struct Marian {
  Side source, target;
  std::vector<EncoderLayer> encoder;
  std::vector<DecoderLayer> decoder;
  Linear head;  // (V, D)
  int64_t pad, start;

  Tensor encode(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out) const;  // -> (B, M, D)
  TensorMap run(const TensorMap& inputs, const ForwardOptions& options) const;
  DecodeState start_decoding(const TensorMap& inputs) const;
  Tensor step(DecodeState& state, const Tensor& tokens) const;  // (B, n) -> (B, V)
};

Tensor Marian::encode(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out) const {
  const Tensor tokens = token_input(inputs, "input_ids");
  const int64_t B = tokens.size(0), M = tokens.size(1);
  const AttentionOptions attention{.terms = mask_terms(optional_input(inputs, "attention_mask"), B, M, M, false, head.device())};
  OutputCollector collector(options);
  const Tensor x = apply_norm(source.last, run_layers(encoder, source(tokens, options.mode), attention, options, collector));
  collector.last_state(x);
  collector.add_outputs(out, std::ssize(encoder), "encoder_");
  return x;
}

// Decoder inputs from labels: shifted right, after the start token. labels: (B, N)
Tensor shifted(const Tensor& labels, int64_t start, int64_t pad) {
  check(labels.rank() == 2, "marian: labels of shape ", labels.shape(), ", expected (B, N)");
  std::vector<int64_t> out;
  for (const std::vector<int64_t>& row : rows_of(labels, labels.size(0), labels.size(1))) {
    out.push_back(start);
    for (size_t i = 0; i + 1 < row.size(); ++i) out.push_back(row[i] == -100 ? pad : row[i]);
  }
  return Tensor::from(out, labels.shape(), kCpu);
}

TensorMap Marian::run(const TensorMap& inputs, const ForwardOptions& options) const {
  TensorMap out;
  const Tensor memory = encode(inputs, options, out), labels = optional_input(inputs, "labels");
  const bool from_labels = labels.defined() && !inputs.contains("decoder_input_ids");
  const Tensor tokens = from_labels ? shifted(labels, start, pad) : token_input(inputs, "decoder_input_ids");
  const int64_t B = tokens.size(0), N = tokens.size(1), M = memory.size(1);
  DecoderTerms terms{.self = {.terms = mask_terms(optional_input(inputs, "decoder_attention_mask"), B, N, N, true, memory.device())},
                     .cross = {.terms = mask_terms(optional_input(inputs, "attention_mask"), B, N, M, false, memory.device())},
                     .causal = false};
  OutputCollector collector(options);
  Tensor x = target(tokens, options.mode);
  collector.state(x);
  x = in_precision(x, options.precision);
  const Tensor states = in_precision(memory, options.precision);
  for (const DecoderLayer& layer : decoder) {
    x = layer(x, states, terms, options.mode);
    collector.state(x);
  }
  x = apply_norm(target.last, in_precision(x, DType::f32));
  collector.last_state(x);
  collector.add_outputs(out, std::ssize(decoder), "decoder_", true);
  out["encoder_last_hidden_state"] = memory;
  add_token_logits(out, "logits", head, x, labels, options);
  return out;
}

DecodeState Marian::start_decoding(const TensorMap& inputs) const {
  TensorMap unused;
  const Tensor memory = encode(inputs, {}, unused);
  DecodeState state{.past = std::vector<KeyValueCache>(decoder.size()), .memory_mask = optional_input(inputs, "attention_mask")};
  for (const DecoderLayer& layer : decoder) state.memory.push_back(layer.cross_attention.keys_values(memory));
  return state;
}

Tensor Marian::step(DecodeState& state, const Tensor& tokens) const {
  const int64_t B = tokens.size(0), n = tokens.size(1), M = state.memory.empty() ? 0 : state.memory[0].first.size(2);
  const DecoderTerms terms{.cross = {.terms = mask_terms(state.memory_mask, B, n, M, false, head.device())}};
  Tensor x = target(tokens, {}, state.length());
  for (size_t i = 0; i < decoder.size(); ++i) x = decoder[i].step(x, state.memory[i], terms, {}, {.cache = &state.past[i]});
  return head(apply_norm(target.last, reshape(slice(x, 1, n - 1, n), {B, x.size(2)})));
}

LayerOptions layer_options(const Config& config, int64_t D, const std::string& side) {
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

Marian make_marian(const Scope& scope, const Config& config) {
  for (const char* key : {"normalize_before", "normalize_embedding", "add_final_layer_norm", "tie_encoder_decoder"})
    config.only(key, false);
  for (const char* key : {"encoder_layerdrop", "decoder_layerdrop"}) config.only(key, 0);
  config.only("static_position_embeddings", true);
  const int64_t D = config.size("d_model", 1024), V = config.size("vocab_size", 58101), P = marian_positions(config);
  const bool shared = config.flag("share_encoder_decoder_embeddings", true), tie = config.flag("tie_word_embeddings", true);
  const int64_t W = shared ? V : config.size("decoder_vocab_size", V);
  const Scope inner = scope / "model", encoder = inner / "encoder", decoder = inner / "decoder";
  const std::string tied_name = shared ? "model.shared.weight" : "model.decoder.embed_tokens.weight";
  Marian marian{};
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
  const LayerOptions encoder_options = layer_options(config, D, "encoder"), decoder_options = layer_options(config, D, "decoder");
  marian.source.last = final_norm(encoder / "layer_norm", variant.apply(encoder_options));
  marian.target.last = final_norm(decoder / "layer_norm", variant.apply(decoder_options));
  for (Side* side : {&marian.source, &marian.target}) {
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

Network make(const Scope& root, const Config& config) {
  const auto marian = std::make_shared<const Marian>(make_marian(root.with(initializer_from(config, "init_std", false)), config));
  return {.run = [=](const TensorMap& inputs, const ForwardOptions& options) { return marian->run(inputs, options); },
          .inputs = {"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask", "labels"},
          .decoder = {.start = [=](const TensorMap& inputs) { return marian->start_decoding(inputs); },
                      .step = [=](DecodeState& state, const Tensor& tokens) { return marian->step(state, tokens); },
                      .encoder = true}};
}

}  // namespace

Architectures marian_architectures() {
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
