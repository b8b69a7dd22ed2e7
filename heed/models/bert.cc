// BERT (Devlin et al. 2019): the encoder, and with heads for masked words, next sentences, sentences and tokens.
#include <algorithm>

#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/pooling.h"

namespace heed {
namespace {

constexpr const char* kWords = "embeddings.word_embeddings.weight";
constexpr LayerNames kBertLayer{"attention", "attention.output.LayerNorm", "", "output.LayerNorm"};

// The first token of every text and those with labels, n of each: some may come twice, but only once with its label. labels: (B, N) or
// undefined; they become (B, n) -> (B, n)
Tensor labelled_places(Tensor& labels, int64_t B, int64_t N) {
  const std::vector<std::vector<int64_t>> rows = rows_of(labels, B, N);
  if (rows.empty()) return Tensor::zeros({B, 1}, DType::i64);
  std::vector<std::vector<int64_t>> places(rows.size(), {0});
  size_t n = 1;
  for (size_t b = 0; b < rows.size(); ++b) {
    for (size_t i = 1; i < rows[b].size(); ++i)
      if (rows[b][i] != -100) places[b].push_back(static_cast<int64_t>(i));
    n = std::max(n, places[b].size());
  }
  std::vector<int64_t> all, kept;
  for (size_t b = 0; b < rows.size(); ++b)
    for (size_t i = 0; i < n; ++i) {
      all.push_back(i < places[b].size() ? places[b][i] : 0);
      kept.push_back(i < places[b].size() ? rows[b][static_cast<size_t>(all.back())] : -100);
    }
  const Shape shape{B, static_cast<int64_t>(n)};
  labels = Tensor::from(kept, shape);
  return Tensor::from(all, shape);
}

struct Bert {
  Embedding words, segments;
  AddedPositions positions;
  Norm norm;
  std::vector<EncoderLayer> layers;
  Norm last;  // of norms before the branches
  Pool pool;
  Linear pooler;  // of what is pooled; undefined where no head asks for it
  float dropout;
  bool causal;

  // (B, N) -> (B, N, D). A head that reads only some tokens makes `labels` (B, N) those of the tokens given: the first one, and those
  // with labels, n for every text.
  Tensor operator()(const Named& inputs, const Ask& ask, Named& out, Tensor* labels = nullptr) const {
    const Tensor tokens = tokens_in(inputs, "input_ids");
    const int64_t B = tokens.size(0), N = tokens.size(1);
    const Tensor types = given(inputs, "token_type_ids");
    const Tensor segment = types.defined() ? segments(types) : slice(segments.weight, 0, 0, 1);
    const Tensor x = norm(positions(words(tokens) + segment, given(inputs, "position_ids")));
    const AttentionOptions options{.terms = mask_terms(given(inputs, "attention_mask"), B, N, N, causal)};
    Witness witness(ask);
    const Tensor wanted = labels && may_leave_out(layers, options, ask) ? labelled_places(*labels, B, N) : Tensor();
    const Tensor y = normed(last, run_layers(layers, heed::dropout(x, dropout, ask.mode), options, ask, witness, {}, wanted));
    witness.last_state(y);
    witness.tell(out, std::ssize(layers));
    return y;
  }
  Tensor pooled(const Tensor& x, const Named& inputs, const Ask& ask) const {  // (B, N, D) -> (B, D)
    return pooler(pool_text(pool, x, given(inputs, "attention_mask"), ask.mode), Activation::tanh);
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
                             .feed_forward = {.wide = config.size("intermediate_size", 3072),
                                              .activation = config.activation("hidden_act", "gelu"),
                                              .names = {.up = "intermediate.dense", .down = "output.dense"}},
                             .eps = eps,
                             .branch = {.dropout = dropout}};
  const Scope embeddings = scope / "embeddings";
  const int64_t tokens = config.size("max_position_embeddings", 512);
  const Variant variant(config, tokens);
  const int64_t layers = config.size("num_hidden_layers", 12, 0);
  Bert made{.words = Embedding(embeddings / "word_embeddings", config.size("vocab_size", 30522), D),
            .segments = Embedding(embeddings / "token_type_embeddings", config.size("type_vocab_size", 2), D),
            .positions = variant.added(
                embeddings, D, [&] { return AddedPositions{LearnedPositions(embeddings / "position_embeddings", tokens, D).weight}; }),
            .norm = Norm(embeddings / "LayerNorm", D, eps),
            .layers = {},
            .last = last_norm(scope / "encoder.norm", variant.changed(options)),
            .pool = {},
            .pooler = {},
            .dropout = dropout,
            .causal = config.flag("is_decoder", false)};
  for (int64_t i = 0; i < layers; ++i)
    made.layers.push_back(make_encoder_layer(scope / "encoder.layer" / i, variant.changed(options, i, layers), kBertLayer));
  if (pools) {
    made.pool = variant.pool(scope / "pooling", options);
    made.pooler = Linear(scope / "pooler.dense", D, D);
  }
  return made;
}

// Which word stands at a place: a layer, then the words' own vectors.
struct WordHead {
  Linear transform;
  Norm norm;
  Activation activation;
  Linear words;  // (V, D)

  // (..., D) -> (..., D), of which words are made
  Tensor states(const Tensor& x) const { return norm(transform(x, activation)); }
};

WordHead make_word_head(const Scope& scope, const Config& config, const Bert& bert, bool shared) {
  const int64_t V = bert.words.weight.size(0), D = bert.words.weight.size(1);
  const std::string used = shared ? ".bias" : ".decoder.bias", other = shared ? ".decoder.bias" : ".bias";
  Params& params = scope.params();
  const bool keeps_both = params.file_names().empty() || (params.file_has(scope.path() + used) && params.file_has(scope.path() + other));
  if (!shared && keeps_both)
    scope.get("bias", {V}, initial::zeros(), {.learned = false, .decays = false});  // for other programs; nobody reads it
  else
    params.alias(scope.path() + other, scope.path() + used);
  return {.transform = Linear(scope / "transform.dense", D, D),
          .norm = Norm(scope / "transform.LayerNorm", D, config.epsilon("layer_norm_eps", 1e-12f)),
          .activation = config.activation("hidden_act", "gelu"),
          .words = shared ? Linear(scope, bert.words.weight, scope.get("bias", {V}, initial::zeros(), {.decays = false}))
                          : Linear(scope / "decoder", D, V, {.weight = scope.initial().embedding})};
}

bool shares_words(const Scope& scope, const Config& config) {
  return tied(scope, config, true, "cls.predictions.decoder.weight", std::string("bert.") + kWords);
}

const std::vector<std::string> kInputs{"input_ids", "attention_mask", "token_type_ids", "position_ids", "labels", "next_sentence_label"};

// A network with a head: `finish` adds to the outputs what the head makes of x (B, N, D) and labels.
enum class Reads { all, first, labelled };  // tokens
template <class Finish>
Network with_head(const Bert& bert, Reads reads, Finish finish, size_t inputs) {
  return {.run =
              [=](const Named& given_inputs, const Ask& ask) {
                Named out;
                Tensor labels = given(given_inputs, "labels"), none;
                const bool some = reads == Reads::first || (reads == Reads::labelled && labels.defined());
                const Tensor x = bert(given_inputs, ask, out, !some ? nullptr : reads == Reads::first ? &none : &labels);
                finish(given_inputs, ask, x, labels, out);
                return out;
              },
          .inputs = {kInputs.begin(), kInputs.begin() + static_cast<int64_t>(inputs)}};
}

Network make_inner(const Scope& root, const Config& config) {
  const Bert bert = make_bert(root.with(beginning(config, "initializer_range", true)), config, true);
  const auto finish = [=](const Named& inputs, const Ask& ask, const Tensor& x, const Tensor&, Named& out) {
    out["last_hidden_state"] = x;
    out["pooler_output"] = bert.pooled(x, inputs, ask);
  };
  return with_head(bert, Reads::all, finish, 4);
}

Network make_masked(const Scope& root, const Config& config) {
  const Scope scope = root.with(beginning(config, "initializer_range", true));
  const bool shared = shares_words(scope, config);
  const Bert bert = make_bert(scope / "bert", config, false);
  const WordHead head = make_word_head(scope / "cls.predictions", config, bert, shared);
  const auto finish = [=](const Named&, const Ask& ask, const Tensor& x, const Tensor& labels, Named& out) {
    tell_words(out, "logits", head.words, x, labels, ask, [&](const Tensor& y) { return head.states(y); });
  };
  return with_head(bert, Reads::labelled, finish, 5);
}

Network make_next(const Scope& root, const Config& config) {
  const Scope scope = root.with(beginning(config, "initializer_range", true));
  const Bert bert = make_bert(scope / "bert", config, true);
  const Linear head(scope / "cls.seq_relationship", bert.pooler.outputs(), 2);
  const auto finish = [=](const Named& inputs, const Ask& ask, const Tensor& x, const Tensor& labels, Named& out) {
    out["logits"] = head(bert.pooled(x, inputs, ask));
    if (labels.defined()) out["loss"] = token_loss(out["logits"], labels, ask);
  };
  return with_head(bert, bert.pool.kind == Pooling::class_token ? Reads::first : Reads::all, finish, 5);
}

// Masked words and next sentences at once.
Network make_pretraining(const Scope& root, const Config& config) {
  const Scope scope = root.with(beginning(config, "initializer_range", true));
  const bool shared = shares_words(scope, config);
  const Bert bert = make_bert(scope / "bert", config, true);
  const WordHead words = make_word_head(scope / "cls.predictions", config, bert, shared);
  const Linear next(scope / "cls.seq_relationship", bert.pooler.outputs(), 2);
  const auto finish = [=](const Named& inputs, const Ask& ask, const Tensor& x, const Tensor& labels, Named& out) {
    const Tensor follows = given(inputs, "next_sentence_label");
    // `transformers` has a loss where both labels are given; who asks for nothing else gets that of either.
    const bool counts = ask.loss_only || (labels.defined() && follows.defined());
    if (labels.defined() || !ask.loss_only)
      tell_words(out, "prediction_logits", words.words, x, counts ? labels : Tensor(), ask,
                 [&](const Tensor& y) { return words.states(y); });
    out["seq_relationship_logits"] = next(bert.pooled(x, inputs, ask));
    if (!counts || !follows.defined()) return;
    const Tensor loss = token_loss(out["seq_relationship_logits"], follows, ask);
    out["loss"] = labels.defined() ? out["loss"] + loss : loss;
  };
  return with_head(bert, bert.pool.kind == Pooling::class_token ? Reads::labelled : Reads::all, finish, 6);
}

// Of sentences or of every token.
Network make_classifier(const Scope& root, const Config& config, bool sentences) {
  const Scope scope = root.with(beginning(config, "initializer_range", true));
  const Bert bert = make_bert(scope / "bert", config, sentences);
  const Linear head(scope / "classifier", bert.words.weight.size(1), config.labels());
  const float dropout = config.probability("classifier_dropout", bert.dropout);
  const auto finish = [=](const Named& inputs, const Ask& ask, const Tensor& x, const Tensor& labels, Named& out) {
    out["logits"] = head(heed::dropout(sentences ? bert.pooled(x, inputs, ask) : x, dropout, ask.mode));
    if (labels.defined())
      out["loss"] = sentences ? classification_loss(out["logits"], labels, config, ask) : token_loss(out["logits"], labels, ask);
  };
  return with_head(bert, !sentences ? Reads::all : bert.pool.kind == Pooling::class_token ? Reads::first : Reads::all, finish, 5);
}

}  // namespace

Architectures bert_architectures() {
  const auto classify = [](bool sentences) {
    return [=](const Scope& scope, const Config& config) { return make_classifier(scope, config, sentences); };
  };
  const auto entry = [](const char* name, auto make) {
    return Architecture{
        .name = name, .base = "bert", .bare = std::string_view(name) == "BertModel", .make = make, .ignored = {"embeddings.position_ids"}};
  };
  return {entry("BertModel", make_inner),
          entry("BertForPreTraining", make_pretraining),
          entry("BertForMaskedLM", make_masked),
          entry("BertForNextSentencePrediction", make_next),
          entry("BertForSequenceClassification", classify(true)),
          entry("BertForTokenClassification", classify(false))};
}

}  // namespace heed
