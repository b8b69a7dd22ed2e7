// The encoder-decoder of Vaswani et al. 2017 as Marian trains it (Junczys-Dowmunt et al. 2018): norms after the branches,
// sinusoidal positions with sines first, embeddings that may be shared by both sides and the output.
#include <cmath>

#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/decoder.h"

namespace heed {
namespace {

constexpr LayerNames kEncoder{"self_attn", "self_attn_layer_norm", "", "final_layer_norm"};
constexpr LayerNames kDecoder{"self_attn", "self_attn_layer_norm", "", "final_layer_norm", "encoder_attn", "encoder_attn_layer_norm"};

// Tokens as vectors with positions: one for each side.
struct Side {
  Embedding words;
  AddedPositions positions;
  Norm last;  // of norms before the branches
  float scale, dropout;

  Tensor operator()(const Tensor& tokens, Mode mode, int64_t first = 0) const {  // (B, N) -> (B, N, D)
    return heed::dropout(positions(words(tokens) * scale, {}, first), dropout, mode);
  }
};

struct Marian {
  Side source, target;
  std::vector<EncoderLayer> encoder;
  std::vector<DecoderLayer> decoder;
  Linear head;  // (V, D)
  int64_t pad, start;

  Tensor encode(const Named& inputs, const Ask& ask, Named& out) const;  // -> (B, M, D)
  Named run(const Named& inputs, const Ask& ask) const;
  Writing begin(const Named& inputs) const;
  Tensor step(Writing& texts, const Tensor& tokens) const;  // (B, n) -> (B, V)
};

Tensor Marian::encode(const Named& inputs, const Ask& ask, Named& out) const {
  const Tensor tokens = tokens_in(inputs, "input_ids");
  const int64_t B = tokens.size(0), M = tokens.size(1);
  const AttentionOptions options{.terms = mask_terms(given(inputs, "attention_mask"), B, M, M, false)};
  Witness witness(ask);
  const Tensor x = normed(source.last, run_layers(encoder, source(tokens, ask.mode), options, ask, witness));
  witness.last_state(x);
  witness.tell(out, std::ssize(encoder), "encoder_");
  return x;
}

// The labels one place later behind the token that texts begin with. labels: (B, N)
Tensor shifted(const Tensor& labels, int64_t start, int64_t pad) {
  check(labels.rank() == 2, "marian: labels of shape ", labels.shape(), ", expected (B, N)");
  std::vector<int64_t> out;
  for (const std::vector<int64_t>& row : rows_of(labels, labels.size(0), labels.size(1))) {
    out.push_back(start);
    for (size_t i = 0; i + 1 < row.size(); ++i) out.push_back(row[i] == -100 ? pad : row[i]);
  }
  return Tensor::from(out, labels.shape());
}

Named Marian::run(const Named& inputs, const Ask& ask) const {
  Named out;
  const Tensor memory = encode(inputs, ask, out), labels = given(inputs, "labels");
  const bool from_labels = labels.defined() && !inputs.contains("decoder_input_ids");
  const Tensor tokens = from_labels ? shifted(labels, start, pad) : tokens_in(inputs, "decoder_input_ids");
  const int64_t B = tokens.size(0), N = tokens.size(1), M = memory.size(1);
  DecoderTerms terms{.self = {.terms = mask_terms(given(inputs, "decoder_attention_mask"), B, N, N, true)},
                     .cross = {.terms = mask_terms(given(inputs, "attention_mask"), B, N, M, false)},
                     .causal = false};
  Witness witness(ask);
  Tensor x = target(tokens, ask.mode);
  witness.state(x);
  for (const DecoderLayer& layer : decoder) {
    x = layer(x, memory, terms, ask.mode);
    witness.state(x);
  }
  x = normed(target.last, x);
  witness.last_state(x);
  witness.tell(out, std::ssize(decoder), "decoder_", true);
  out["encoder_last_hidden_state"] = memory;
  tell_words(out, "logits", head, x, labels, ask);
  return out;
}

Writing Marian::begin(const Named& inputs) const {
  Named unused;
  const Tensor memory = encode(inputs, {}, unused);
  Writing texts{.past = std::vector<KeyValueCache>(decoder.size()), .memory_mask = given(inputs, "attention_mask")};
  for (const DecoderLayer& layer : decoder) texts.memory.push_back(layer.cross_attention.keys_values(memory));
  return texts;
}

Tensor Marian::step(Writing& texts, const Tensor& tokens) const {
  const int64_t B = tokens.size(0), n = tokens.size(1), M = texts.memory.empty() ? 0 : texts.memory[0].first.size(2);
  const DecoderTerms terms{.cross = {.terms = mask_terms(texts.memory_mask, B, n, M, false)}};
  Tensor x = target(tokens, {}, texts.length());
  for (size_t i = 0; i < decoder.size(); ++i) x = decoder[i].step(x, texts.memory[i], terms, {}, {.cache = &texts.past[i]});
  return head(normed(target.last, reshape(slice(x, 1, n - 1, n), {B, x.size(2)})));
}

LayerOptions layer_options(const Config& config, int64_t D, const std::string& side) {
  return {.attention = {.width = D,
                        .heads = config.size(side + "_attention_heads", 16),
                        .dropout = config.probability("attention_dropout", 0),
                        .names = {"q_proj", "k_proj", "v_proj", "", "out_proj"}},
          .feed_forward = {.wide = config.size(side + "_ffn_dim", 4096),
                           .activation = config.activation("activation_function", "gelu"),
                           .dropout = config.probability("activation_dropout", 0),
                           .names = {.up = "fc1", .down = "fc2"}},
          .branch = {.dropout = config.probability("dropout", 0.1f)}};
}

// Computed, unless a checkpoint holds them all the same.
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
  const int64_t D = config.size("d_model", 1024), V = config.size("vocab_size", 58101), P = config.size("max_position_embeddings", 1024);
  const bool shared = config.flag("share_encoder_decoder_embeddings", true), tie = config.flag("tie_word_embeddings", true);
  const int64_t W = shared ? V : config.size("decoder_vocab_size", V);
  const Scope inner = scope / "model", encoder = inner / "encoder", decoder = inner / "decoder";
  const std::string one = shared ? "model.shared.weight" : "model.decoder.embed_tokens.weight";
  Marian made{};
  if (tie) {
    for (const char* other : {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"})
      if (shared) scope.params().alias(other, one);
    scope.params().alias("lm_head.weight", one);
  }
  if (shared && !tie) inner.get("shared.weight", {V, D}, scope.initial().embedding, {.learned = false});  // kept, but nobody reads it
  made.source.words = tie && shared ? Embedding(inner / "shared", V, D) : Embedding(encoder / "embed_tokens", V, D);
  made.target.words = tie && shared ? made.source.words : Embedding(decoder / "embed_tokens", W, D);
  made.head = language_head(scope, made.target.words, tie);
  if (scope.params().file_names().empty() || scope.params().file_has("final_logits_bias"))
    made.head.bias = reshape(scope.get("final_logits_bias", {1, W}, initial::zeros(), {.learned = false, .decays = false}), {-1});
  const Variant variant(config, P);
  made.source.positions = variant.added(encoder, D, [&] { return positions_of(encoder, P, D); });
  made.target.positions = variant.added(decoder, D, [&] { return positions_of(decoder, P, D); });
  const LayerOptions reading = layer_options(config, D, "encoder"), writing = layer_options(config, D, "decoder");
  made.source.last = last_norm(encoder / "layer_norm", variant.changed(reading));
  made.target.last = last_norm(decoder / "layer_norm", variant.changed(writing));
  for (Side* side : {&made.source, &made.target}) {
    side->scale = config.flag("scale_embedding", false) ? std::sqrt(static_cast<float>(D)) : 1;
    side->dropout = config.probability("dropout", 0.1f);
  }
  const int64_t readers = config.size("encoder_layers", 12, 0), writers = config.size("decoder_layers", 12, 0);
  for (int64_t i = 0; i < readers; ++i)
    made.encoder.push_back(make_encoder_layer(encoder / "layers" / i, variant.changed(reading, i, readers), kEncoder));
  for (int64_t i = 0; i < writers; ++i)
    made.decoder.push_back(make_decoder_layer(decoder / "layers" / i, variant.changed(writing, i, writers), kDecoder));
  made.pad = config.size("pad_token_id", 58100, 0);
  made.start = config.size("decoder_start_token_id", 58100, 0);
  return made;
}

Network make(const Scope& root, const Config& config) {
  const auto marian = std::make_shared<const Marian>(make_marian(root.with(beginning(config, "init_std", false)), config));
  return {.run = [=](const Named& inputs, const Ask& ask) { return marian->run(inputs, ask); },
          .inputs = {"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask", "labels"},
          .decoder = {.start = [=](const Named& inputs) { return marian->begin(inputs); },
                      .step = [=](Writing& texts, const Tensor& tokens) { return marian->step(texts, tokens); },
                      .encoder = true}};
}

}  // namespace

Architectures marian_architectures() { return {{.name = "MarianMTModel", .base = "model", .make = make}}; }

}  // namespace heed
