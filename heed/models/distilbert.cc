// DistilBERT (Sanh et al. 2019): BERT with fewer layers, without segments and pooler.
#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/pooling.h"

namespace heed {
namespace {

constexpr float kEps = 1e-12f;  // no config says another
constexpr LayerNames kDistilBertLayer{"attention", "sa_layer_norm", "ffn", "output_layer_norm"};

struct DistilBert {
  Embedding words;
  AddedPositions positions;
  Norm norm;
  std::vector<EncoderLayer> layers;
  Norm last;  // of norms before the branches
  float dropout;

  // (B, N) -> (B, N, D)
  Tensor operator()(const Named& inputs, const Ask& ask, Named& out) const {
    const Tensor tokens = tokens_in(inputs, "input_ids");
    const int64_t B = tokens.size(0), N = tokens.size(1);
    const Tensor x = norm(positions(words(tokens), given(inputs, "position_ids")));
    const AttentionOptions options{.terms = mask_terms(given(inputs, "attention_mask"), B, N, N, false)};
    Witness witness(ask);
    const Tensor y = normed(last, run_layers(layers, heed::dropout(x, dropout, ask.mode), options, ask, witness));
    witness.last_state(y);
    witness.tell(out, std::ssize(layers));
    return y;
  }
};

DistilBert make_distilbert(const Scope& scope, const Config& config) {
  const int64_t D = config.size("dim", 768), P = config.size("max_position_embeddings", 512);
  const float dropout = config.probability("dropout", 0.1f);
  const LayerOptions options{.attention = {.width = D,
                                           .heads = config.size("n_heads", 12),
                                           .dropout = config.probability("attention_dropout", 0.1f),
                                           .names = {"q_lin", "k_lin", "v_lin", "", "out_lin"}},
                             .feed_forward = {.wide = config.size("hidden_dim", 4 * 768),
                                              .activation = config.activation("activation", "gelu"),
                                              .names = {.up = "lin1", .down = "lin2"}},
                             .eps = kEps,
                             .branch = {.dropout = dropout}};
  const Scope embeddings = scope / "embeddings";
  const Variant variant(config, P);
  const int64_t layers = config.size("n_layers", 6, 0);
  const bool sinusoidal = config.flag("sinusoidal_pos_embds", false);  // how they begin; checkpoints hold them all the same
  const Initialiser begin =
      sinusoidal ? [](const Shape& shape, Rng&) { return sinusoidal_positions(shape[0], shape[1]); } : scope.initial().position;
  const auto own = [&] {
    return AddedPositions{embeddings.get("position_embeddings.weight", {P, D}, begin, {.learned = !sinusoidal, .decays = false})};
  };
  DistilBert made{.words = Embedding(embeddings / "word_embeddings", config.size("vocab_size", 30522), D),
                  .positions = variant.added(embeddings, D, own),
                  .norm = Norm(embeddings / "LayerNorm", D, kEps),
                  .layers = {},
                  .last = last_norm(scope / "transformer.norm", variant.changed(options)),
                  .dropout = dropout};
  for (int64_t i = 0; i < layers; ++i)
    made.layers.push_back(make_encoder_layer(scope / "transformer.layer" / i, variant.changed(options, i, layers), kDistilBertLayer));
  return made;
}

Network make_inner(const Scope& root, const Config& config) {
  const DistilBert bert = make_distilbert(root.with(beginning(config, "initializer_range", false)), config);
  return {.run =
              [=](const Named& inputs, const Ask& ask) {
                Named out;
                out["last_hidden_state"] = bert(inputs, ask, out);
                return out;
              },
          .inputs = {"input_ids", "attention_mask", "position_ids"}};
}

Network make_classifier(const Scope& root, const Config& config) {
  const Scope scope = root.with(beginning(config, "initializer_range", false));
  const DistilBert bert = make_distilbert(scope / "distilbert", config);
  const int64_t D = bert.words.weight.size(1);
  const Linear first(scope / "pre_classifier", D, D), head(scope / "classifier", D, config.labels());
  const float dropout = config.probability("seq_classif_dropout", 0.2f);
  const Pool pool =
      Variant(config, 0).pool(scope / "pooling", {.attention = {.width = D, .heads = config.size("n_heads", 12)}, .eps = kEps});
  return {.run =
              [=](const Named& inputs, const Ask& ask) {
                Named out;
                const Tensor x =
                    first(pool_text(pool, bert(inputs, ask, out), given(inputs, "attention_mask"), ask.mode), Activation::relu);
                out["logits"] = head(heed::dropout(x, dropout, ask.mode));
                if (const Tensor labels = given(inputs, "labels"); labels.defined())
                  out["loss"] = classification_loss(out["logits"], labels, config, ask);
                return out;
              },
          .inputs = {"input_ids", "attention_mask", "position_ids", "labels"}};
}

}  // namespace

Architectures distilbert_architectures() {
  return {{.name = "DistilBertModel", .base = "distilbert", .bare = true, .make = make_inner},
          {.name = "DistilBertForSequenceClassification", .base = "distilbert", .make = make_classifier}};
}

}  // namespace heed
