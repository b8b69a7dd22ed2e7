// DistilBERT (Sanh et al. 2019): BERT with fewer layers, without segment embeddings and pooler.
#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/pooling.h"

namespace heed {
namespace {

constexpr float kEps = 1e-12f;  // not in configs
constexpr LayerNames kDistilBertLayer{"attention", "sa_layer_norm", "ffn", "output_layer_norm"};

int64_t distilbert_positions(const Config& config) { return config.size("max_position_embeddings", 512); }

struct DistilBert {
  Embedding word_embeddings;
  AddedPositions positions;
  Norm norm;
  std::vector<EncoderLayer> layers;
  Norm last;  // final norm of pre-norm layers
  float dropout;

  // (B, N) -> (B, N, D)
  Tensor operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out) const {
    const Tensor tokens = token_input(inputs, "input_ids");
    const int64_t B = tokens.size(0), N = tokens.size(1);
    const Tensor x = norm(positions(word_embeddings(tokens), optional_input(inputs, "position_ids")));
    const AttentionOptions attention{.terms = mask_terms(optional_input(inputs, "attention_mask"), B, N, N, false, x.device())};
    OutputCollector collector(options);
    const Tensor y = apply_norm(last, run_layers(layers, heed::dropout(x, dropout, options.mode), attention, options, collector));
    collector.last_state(y);
    collector.add_outputs(out, std::ssize(layers));
    return y;
  }
};

DistilBert make_distilbert(const Scope& scope, const Config& config) {
  const int64_t D = config.size("dim", 768), P = distilbert_positions(config);
  const float dropout = config.probability("dropout", 0.1f);
  const LayerOptions options{.attention = {.width = D,
                                           .heads = config.size("n_heads", 12),
                                           .dropout = config.probability("attention_dropout", 0.1f),
                                           .names = {"q_lin", "k_lin", "v_lin", "", "out_lin"}},
                             .feed_forward = {.hidden_width = config.size("hidden_dim", 4 * 768),
                                              .activation = config.activation("activation", "gelu"),
                                              .names = {.up = "lin1", .down = "lin2"}},
                             .eps = kEps,
                             .branch = {.dropout = dropout}};
  const Scope embeddings = scope / "embeddings";
  const Variant variant(config, P);
  const int64_t layers = config.size("n_layers", 6, 0);
  const bool sinusoidal = config.flag("sinusoidal_pos_embds", false);  // initial values; checkpoints contain them too
  const Initializer initializer =
      sinusoidal ? [](const Shape& shape, Rng&) { return sinusoidal_positions(shape[0], shape[1]); } : scope.initializer().position;
  const auto own = [&] {
    return AddedPositions{embeddings.get("position_embeddings.weight", {P, D}, initializer, {.learned = !sinusoidal, .decays = false})};
  };
  DistilBert bert{.word_embeddings = Embedding(embeddings / "word_embeddings", config.size("vocab_size", 30522), D),
                  .positions = variant.added_positions(embeddings, D, own),
                  .norm = Norm(embeddings / "LayerNorm", D, kEps),
                  .layers = {},
                  .last = final_norm(scope / "transformer.norm", variant.apply(options)),
                  .dropout = dropout};
  for (int64_t i = 0; i < layers; ++i)
    bert.layers.push_back(make_encoder_layer(scope / "transformer.layer" / i, variant.apply(options, i, layers), kDistilBertLayer));
  return bert;
}

Network make_inner(const Scope& root, const Config& config) {
  const DistilBert bert = make_distilbert(root.with(initializer_from(config, "initializer_range", false)), config);
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                out["last_hidden_state"] = bert(inputs, options, out);
                return out;
              },
          .inputs = {"input_ids", "attention_mask", "position_ids"}};
}

Network make_classifier(const Scope& root, const Config& config) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", false));
  const DistilBert bert = make_distilbert(scope / "distilbert", config);
  const int64_t D = bert.word_embeddings.weight.size(1);
  const Linear first(scope / "pre_classifier", D, D), head(scope / "classifier", D, config.labels());
  const float dropout = config.probability("seq_classif_dropout", 0.2f);
  const Pool pool =
      Variant(config, 0).pool(scope / "pooling", {.attention = {.width = D, .heads = config.size("n_heads", 12)}, .eps = kEps});
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                const Tensor x = first(pool_text(pool, bert(inputs, options, out), optional_input(inputs, "attention_mask"), options.mode),
                                       Activation::relu);
                out["logits"] = head(heed::dropout(x, dropout, options.mode));
                if (const Tensor labels = optional_input(inputs, "labels"); labels.defined())
                  out["loss"] = classification_loss(out["logits"], labels, config, options);
                return out;
              },
          .inputs = {"input_ids", "attention_mask", "position_ids", "labels"}};
}

}  // namespace

Architectures distilbert_architectures() {
  return of_family({.model_type = "distilbert",
                    .base = "distilbert",
                    .tokens = true,
                    .positions = distilbert_positions,
                    .word_tables = {"embeddings.word_embeddings.weight"},
                    .position_table = "embeddings.position_embeddings.weight",
                    .default_position = "learned",
                    .norm = "after",
                    .keys = {.layers = {"n_layers"},
                             .heads = {"n_heads"},
                             .width = {"dim"},
                             .feed_forward = {"hidden_dim"},
                             .activation = {"activation"},
                             .dropout = {"dropout", "attention_dropout"},
                             .positions = "max_position_embeddings",
                             .more = {"vocab_size", "sinusoidal_pos_embds", "seq_classif_dropout", "pad_token_id"}}},
                   {{"DistilBertModel", ModelTask::features, make_inner},
                    {"DistilBertForSequenceClassification", ModelTask::sequence_classification, make_classifier}});
}

}  // namespace heed
