// BERT (Devlin et al. 2019): the encoder, and heads for masked tokens, next sentences, sentence and token classification.
#include <algorithm>

#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/pooling.h"

namespace heed {
namespace {

constexpr const char* kWords = "embeddings.word_embeddings.weight";
constexpr LayerNames kBertLayer{"attention", "attention.output.LayerNorm", "", "output.LayerNorm"};

int64_t bert_positions(const Config& config) { return config.size("max_position_embeddings", 512); }

// Indices of the first token of every sequence and of the tokens with labels, padded to n with 0. labels: (B, N) or undefined; they
// become (B, n), -100 for the padding -> (B, n)
Tensor labelled_indices(Tensor& labels, int64_t B, int64_t N) {
  const std::vector<std::vector<int64_t>> rows = rows_of(labels, B, N);
  if (rows.empty()) return Tensor::zeros({B, 1}, DType::i64, kCpu);
  std::vector<std::vector<int64_t>> indices(rows.size(), {0});
  size_t n = 1;
  for (size_t b = 0; b < rows.size(); ++b) {
    for (size_t i = 1; i < rows[b].size(); ++i)
      if (rows[b][i] != -100) indices[b].push_back(static_cast<int64_t>(i));
    n = std::max(n, indices[b].size());
  }
  std::vector<int64_t> all, selected;
  for (size_t b = 0; b < rows.size(); ++b)
    for (size_t i = 0; i < n; ++i) {
      all.push_back(i < indices[b].size() ? indices[b][i] : 0);
      selected.push_back(i < indices[b].size() ? rows[b][static_cast<size_t>(all.back())] : -100);
    }
  const Shape shape{B, static_cast<int64_t>(n)};
  labels = Tensor::from(selected, shape, kCpu);
  return Tensor::from(all, shape, kCpu);
}

struct Bert {
  Embedding word_embeddings, segment_embeddings;
  AddedPositions positions;
  Norm norm;
  std::vector<EncoderLayer> layers;
  Norm last;  // final norm of pre-norm layers
  Pool pool;
  Linear pooler;  // undefined if no head needs it
  float dropout;
  bool causal;

  // (B, N) -> (B, N, D). With `labels` (B, N), the head reads only the first token and those with labels: the result may be (B, n, D)
  // and labels (B, n).
  Tensor operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, Tensor* labels = nullptr) const {
    const Tensor tokens = token_input(inputs, "input_ids");
    const int64_t B = tokens.size(0), N = tokens.size(1);
    const Tensor types = optional_input(inputs, "token_type_ids");
    const Tensor segment = types.defined() ? segment_embeddings(types) : slice(segment_embeddings.weight, 0, 0, 1);
    const Tensor x = norm(positions(word_embeddings(tokens) + segment, optional_input(inputs, "position_ids")));
    const AttentionOptions attention{.terms = mask_terms(optional_input(inputs, "attention_mask"), B, N, N, causal, x.device())};
    OutputCollector collector(options);
    const Tensor indices = labels && can_skip_tokens(layers, attention, options) ? labelled_indices(*labels, B, N) : Tensor();
    const Tensor y =
        apply_norm(last, run_layers(layers, heed::dropout(x, dropout, options.mode), attention, options, collector, {}, indices));
    collector.last_state(y);
    collector.add_outputs(out, std::ssize(layers));
    return y;
  }
  Tensor pooled(const Tensor& x, const TensorMap& inputs, const ForwardOptions& options) const {  // (B, N, D) -> (B, D)
    return pooler(pool_text(pool, x, optional_input(inputs, "attention_mask"), options.mode), Activation::tanh);
  }
};

Bert make_bert(const Scope& scope, const Config& config, bool pools) {
  config.only("add_cross_attention", false);
  config.only("position_embedding_type", "absolute");
  const int64_t D = config.size("hidden_size", 768);
  const float eps = config.epsilon("layer_norm_eps", 1e-12f), dropout = config.probability("hidden_dropout_prob", 0.1f);
  const LayerOptions options{.attention = {.width = D,
                                           .heads = config.size("num_attention_heads", 12),
                                           .dropout = config.probability("attention_probs_dropout_prob", 0.1f),
                                           .names = {"self.query", "self.key", "self.value", "", "output.dense"}},
                             .feed_forward = {.hidden_width = config.size("intermediate_size", 3072),
                                              .activation = config.activation("hidden_act", "gelu"),
                                              .names = {.up = "intermediate.dense", .down = "output.dense"}},
                             .eps = eps,
                             .branch = {.dropout = dropout}};
  const Scope embeddings = scope / "embeddings";
  const int64_t tokens = bert_positions(config);
  const Variant variant(config, tokens);
  const int64_t layers = config.size("num_hidden_layers", 12, 0);
  Bert bert{.word_embeddings = Embedding(embeddings / "word_embeddings", config.size("vocab_size", 30522), D),
            .segment_embeddings = Embedding(embeddings / "token_type_embeddings", config.size("type_vocab_size", 2), D),
            .positions = variant.added_positions(
                embeddings, D, [&] { return AddedPositions{LearnedPositions(embeddings / "position_embeddings", tokens, D).weight}; }),
            .norm = Norm(embeddings / "LayerNorm", D, eps),
            .layers = {},
            .last = final_norm(scope / "encoder.norm", variant.apply(options)),
            .pool = {},
            .pooler = {},
            .dropout = dropout,
            .causal = config.flag("is_decoder", false)};
  for (int64_t i = 0; i < layers; ++i)
    bert.layers.push_back(make_encoder_layer(scope / "encoder.layer" / i, variant.apply(options, i, layers), kBertLayer));
  if (pools) {
    bert.pool = variant.pool(scope / "pooling", options);
    bert.pooler = Linear(scope / "pooler.dense", D, D);
  }
  return bert;
}

// Masked token prediction: a dense layer with norm, then a product with the word embeddings.
struct TokenHead {
  Linear transform;
  Norm norm;
  Activation activation;
  Linear decoder;  // (V, D)

  // (..., D) -> (..., D), the input of the decoder
  Tensor states(const Tensor& x) const { return norm(transform(x, activation)); }
};

TokenHead make_token_head(const Scope& scope, const Config& config, const Bert& bert, bool shared) {
  const int64_t V = bert.word_embeddings.weight.size(0), D = bert.word_embeddings.weight.size(1);
  const std::string used = shared ? ".bias" : ".decoder.bias", other = shared ? ".decoder.bias" : ".bias";
  Params& params = scope.params();
  const bool keeps_both = params.file_names().empty() || (params.file_has(scope.path() + used) && params.file_has(scope.path() + other));
  if (!shared && keeps_both)
    scope.get("bias", {V}, initializer::zeros(), {.learned = false, .decays = false});  // unused, kept for other programs
  else
    params.alias(scope.path() + other, scope.path() + used);
  return {.transform = Linear(scope / "transform.dense", D, D),
          .norm = Norm(scope / "transform.LayerNorm", D, config.epsilon("layer_norm_eps", 1e-12f)),
          .activation = config.activation("hidden_act", "gelu"),
          .decoder = shared ? Linear(scope / "decoder", bert.word_embeddings.weight,
                                     scope.get("bias", {V}, initializer::zeros(), {.decays = false}))
                            : Linear(scope / "decoder", D, V, {.weight = scope.initializer().embedding})};
}

bool shares_words(const Scope& scope, const Config& config) {
  return tied(scope, config, true, "cls.predictions.decoder.weight", std::string("bert.") + kWords);
}

const std::vector<std::string> kInputs{"input_ids", "attention_mask", "token_type_ids", "position_ids", "labels", "next_sentence_label"};

enum class Reads { all, first, labelled };  // the tokens that a head reads

// A network with a head: `finish` adds the head's outputs for x (B, N, D) and labels.
template <class Finish>
Network with_head(const Bert& bert, Reads reads, Finish finish, size_t input_count) {
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                Tensor labels = optional_input(inputs, "labels"), none;
                const bool some = reads == Reads::first || (reads == Reads::labelled && labels.defined());
                const Tensor x = bert(inputs, options, out, !some ? nullptr : reads == Reads::first ? &none : &labels);
                finish(inputs, options, x, labels, out);
                return out;
              },
          .inputs = {kInputs.begin(), kInputs.begin() + static_cast<int64_t>(input_count)}};
}

Network make_inner(const Scope& root, const Config& config) {
  const Bert bert = make_bert(root.with(initializer_from(config, "initializer_range", true)), config, root.provides("pooler.dense.weight"));
  const auto finish = [=](const TensorMap& inputs, const ForwardOptions& options, const Tensor& x, const Tensor&, TensorMap& out) {
    out["last_hidden_state"] = x;
    if (bert.pooler.defined()) out["pooler_output"] = bert.pooled(x, inputs, options);
  };
  return with_head(bert, Reads::all, finish, 4);
}

Network make_masked(const Scope& root, const Config& config) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", true));
  const bool shared = shares_words(scope, config);
  const Bert bert = make_bert(scope / "bert", config, false);
  const TokenHead head = make_token_head(scope / "cls.predictions", config, bert, shared);
  const auto finish = [=](const TensorMap&, const ForwardOptions& options, const Tensor& x, const Tensor& labels, TensorMap& out) {
    add_token_logits(out, "logits", head.decoder, x, labels, options, [&](const Tensor& y) { return head.states(y); });
  };
  return with_head(bert, Reads::labelled, finish, 5);
}

Network make_next(const Scope& root, const Config& config) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", true));
  const Bert bert = make_bert(scope / "bert", config, true);
  const Linear head(scope / "cls.seq_relationship", bert.pooler.outputs(), 2);
  const auto finish = [=](const TensorMap& inputs, const ForwardOptions& options, const Tensor& x, const Tensor& labels, TensorMap& out) {
    out["logits"] = head(bert.pooled(x, inputs, options));
    if (labels.defined()) out["loss"] = token_loss(out["logits"], labels, options);
  };
  return with_head(bert, bert.pool.kind == Pooling::class_token ? Reads::first : Reads::all, finish, 5);
}

// Masked tokens and next sentences.
Network make_pretraining(const Scope& root, const Config& config) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", true));
  const bool shared = shares_words(scope, config);
  const Bert bert = make_bert(scope / "bert", config, true);
  const TokenHead head = make_token_head(scope / "cls.predictions", config, bert, shared);
  const Linear next(scope / "cls.seq_relationship", bert.pooler.outputs(), 2);
  const auto finish = [=](const TensorMap& inputs, const ForwardOptions& options, const Tensor& x, const Tensor& labels, TensorMap& out) {
    const Tensor follows = optional_input(inputs, "next_sentence_label");
    // `transformers` has a loss only if both labels are present; with loss_only, either one is enough.
    const bool counts = options.loss_only || (labels.defined() && follows.defined());
    if (labels.defined() || !options.loss_only)
      add_token_logits(out, "prediction_logits", head.decoder, x, counts ? labels : Tensor(), options,
                       [&](const Tensor& y) { return head.states(y); });
    out["seq_relationship_logits"] = next(bert.pooled(x, inputs, options));
    if (!counts || !follows.defined()) return;
    const Tensor loss = token_loss(out["seq_relationship_logits"], follows, options);
    out["loss"] = labels.defined() ? out["loss"] + loss : loss;
  };
  return with_head(bert, bert.pool.kind == Pooling::class_token ? Reads::labelled : Reads::all, finish, 6);
}

// Of sentences or of tokens.
Network make_classifier(const Scope& root, const Config& config, bool sentences) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", true));
  const Bert bert = make_bert(scope / "bert", config, sentences);
  const Linear head(scope / "classifier", bert.word_embeddings.weight.size(1), config.labels());
  const float dropout = config.probability("classifier_dropout", bert.dropout);
  const auto finish = [=](const TensorMap& inputs, const ForwardOptions& options, const Tensor& x, const Tensor& labels, TensorMap& out) {
    out["logits"] = head(heed::dropout(sentences ? bert.pooled(x, inputs, options) : x, dropout, options.mode));
    if (labels.defined())
      out["loss"] = sentences ? classification_loss(out["logits"], labels, config, options) : token_loss(out["logits"], labels, options);
  };
  return with_head(bert, !sentences ? Reads::all : bert.pool.kind == Pooling::class_token ? Reads::first : Reads::all, finish, 5);
}

}  // namespace

Architectures bert_architectures() {
  const auto classify = [](bool sentences) {
    return [=](const Scope& scope, const Config& config) { return make_classifier(scope, config, sentences); };
  };
  return of_family(
      {.model_type = "bert",
       .base = "bert",
       .tokens = true,
       .segments = true,
       .positions = bert_positions,
       .word_tables = {kWords},
       .position_table = "embeddings.position_embeddings.weight",
       .default_position = "learned",
       .norm = "after",
       .keys = {.layers = {"num_hidden_layers"},
                .heads = {"num_attention_heads"},
                .width = {"hidden_size"},
                .feed_forward = {"intermediate_size"},
                .activation = {"hidden_act"},
                .dropout = {"hidden_dropout_prob", "attention_probs_dropout_prob"},
                .positions = "max_position_embeddings",
                .more = {"vocab_size", "type_vocab_size", "layer_norm_eps", "is_decoder", "classifier_dropout", "pad_token_id"}},
       .ignored = {"embeddings.position_ids"},
       .task_parts = {"pooler.", "pooling."}},
      {{"BertModel", ModelTask::features, make_inner},
       {"BertForPreTraining", ModelTask::pretraining, make_pretraining},
       {"BertForMaskedLM", ModelTask::masked_lm, make_masked},
       {"BertForNextSentencePrediction", ModelTask::next_sentence, make_next},
       {"BertForSequenceClassification", ModelTask::sequence_classification, classify(true)},
       {"BertForTokenClassification", ModelTask::token_classification, classify(false)}});
}

}  // namespace heed
