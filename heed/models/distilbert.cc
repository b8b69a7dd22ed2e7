// DistilBERT (Sanh et al. 2019): BERT with fewer layers, without segment embeddings and pooler.
#include "heed/models/architecture.h"
#include "heed/models/text_encoder.h"

namespace heed {
namespace {

constexpr float kEps = 1e-12f;  // not in configs
constexpr LayerNames kDistilBertLayer{"attention", "sa_layer_norm", "ffn", "output_layer_norm"};

int64_t distilbert_positions(const Config& config) { return config.size("max_position_embeddings", 512); }

TextEncoder make_distilbert(const Scope& scope, const Config& config) {
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
  TextEncoder encoder{.word_embeddings = Embedding(embeddings / "word_embeddings", config.size("vocab_size", 30522), D),
                      .positions = variant.added_positions(embeddings, D, own),
                      .norm = Norm(embeddings / "LayerNorm", D, kEps),
                      .last = final_norm(scope / "transformer.norm", variant.apply(options)),
                      .dropout = dropout};
  for (int64_t i = 0; i < layers; ++i)
    encoder.layers.push_back(make_encoder_layer(scope / "transformer.layer" / i, variant.apply(options, i, layers), kDistilBertLayer));
  return encoder;
}

Scope initialized_distilbert(const Scope& root, const Config& config) {
  return root.with(initializer_from(config, "initializer_range", false));
}

Network distilbert_inner(const Scope& root, const Config& config) {
  const auto head = [](const HeadInput& in, TensorMap& out) { out["last_hidden_state"] = in.x; };
  return text_network(make_distilbert(initialized_distilbert(root, config), config), Reads::all, head, {});
}

Network distilbert_masked(const Scope& root, const Config& config) {
  const Scope scope = initialized_distilbert(root, config);
  const bool shared = tied(scope, config, true, "vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight");
  const TextEncoder encoder = make_distilbert(scope / "distilbert", config);
  const int64_t V = encoder.word_embeddings.weight.size(0), D = encoder.width();
  const Scope projector = scope / "vocab_projector";
  const TokenHead head{.transform = Linear(scope / "vocab_transform", D, D),
                       .norm = Norm(scope / "vocab_layer_norm", D, kEps),
                       .activation = config.activation("activation", "gelu"),
                       .decoder = shared ? Linear(projector, encoder.word_embeddings.weight,
                                                  projector.get("bias", {V}, initializer::zeros(), {.decays = false}))
                                         : Linear(projector, D, V, {.weight = scope.initializer().embedding})};
  return text_network(encoder, Reads::labelled, masked_tokens(head));
}

Network distilbert_sentences(const Scope& root, const Config& config) {
  const Scope scope = initialized_distilbert(root, config);
  const TextEncoder encoder = make_distilbert(scope / "distilbert", config);
  const int64_t D = encoder.width();
  const Linear linear(scope / "classifier", D, config.labels());
  const Pool pool =
      Variant(config, 0).pool(scope / "pooling", {.attention = {.width = D, .heads = config.size("n_heads", 12)}, .eps = kEps});
  const auto pooled = [first = Linear(scope / "pre_classifier", D, D), sentence = pooled_by(pool)](const HeadInput& in) {
    return first(sentence(in), Activation::relu);
  };
  return text_network(encoder, reads_of(pool), sequence_classes(pooled, linear, config.probability("seq_classif_dropout", 0.2f), config));
}

Network distilbert_tokens(const Scope& root, const Config& config) {
  const Scope scope = initialized_distilbert(root, config);
  const TextEncoder encoder = make_distilbert(scope / "distilbert", config);
  const Linear linear(scope / "classifier", encoder.width(), config.labels());
  return text_network(encoder, Reads::all, token_classes(linear, encoder.dropout));
}

Network distilbert_answers(const Scope& root, const Config& config) {
  const Scope scope = initialized_distilbert(root, config);
  const TextEncoder encoder = make_distilbert(scope / "distilbert", config);
  return text_network(encoder, Reads::all, answer_spans(scope, encoder.width(), config.probability("qa_dropout", 0.1f)), kAnswerInputs);
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
                             .more = {"vocab_size", "sinusoidal_pos_embds", "seq_classif_dropout", "qa_dropout", "pad_token_id"}}},
                   {{"DistilBertModel", ModelTask::features, distilbert_inner},
                    {"DistilBertForMaskedLM", ModelTask::masked_lm, distilbert_masked},
                    {"DistilBertForSequenceClassification", ModelTask::sequence_classification, distilbert_sentences},
                    {"DistilBertForTokenClassification", ModelTask::token_classification, distilbert_tokens},
                    {"DistilBertForQuestionAnswering", ModelTask::question_answering, distilbert_answers}});
}

}  // namespace heed
