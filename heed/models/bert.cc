// BERT (Devlin et al. 2019) and RoBERTa (Liu et al. 2019), which numbers positions from its padding token on: the encoder, and heads for
// masked tokens, next sentences, sentence and token classification, and answers.
#include "heed/models/bert.h"

#include "heed/models/architecture.h"
#include "heed/models/text_encoder.h"

namespace heed {
namespace {

constexpr LayerNames kBertLayer{"attention", "attention.output.LayerNorm", "", "output.LayerNorm"};

constexpr const char* kWords = "embeddings.word_embeddings.weight";

struct BertFamily {
  std::string base;                        // name prefix of the encoder
  int64_t vocabulary;                      // default of vocab_size
  std::optional<int64_t> padding_id = {};  // default of pad_token_id, if positions are numbered from it on
};
const BertFamily kBert{"bert", 30522}, kRoberta{"roberta", 50265, 1}, kXlmRoberta{"roberta", 30522, 1};

int64_t bert_table(const Config& config) { return config.size("max_position_embeddings", 512); }

// Positions before the first token are never used.
int64_t bert_tokens(const Config& config, const BertFamily& family) {
  const int64_t unused = family.padding_id ? config.size("pad_token_id", *family.padding_id, 0) + 1 : 0;
  if (unused >= bert_table(config)) config.refuse("max_position_embeddings", "more than pad_token_id + 1");
  return bert_table(config) - unused;
}

// What a head reads in addition to the states of tokens: nothing, a pooled state, or a pooled state after a dense layer.
enum class Pooled { no, yes, transformed };

struct Bert {
  TextEncoder encoder;
  Pool pool = {};
  Linear pooler = {};

  SentencePooler pooled() const {
    return [pooler = pooler, first = pooled_by(pool)](const HeadInput& in) { return pooler(first(in), Activation::tanh); };
  }
};

Bert make_bert(const Scope& scope, const Config& config, const BertFamily& family, Pooled pooled) {
  config.only("add_cross_attention", false);
  config.only("position_embedding_type", "absolute");
  const LayerOptions options = bert_layer_options(config);
  const int64_t D = options.attention.width;
  const Scope embeddings = scope / "embeddings";
  const int64_t tokens = bert_table(config);
  const Variant variant(config, tokens);
  const int64_t layers = config.size("num_hidden_layers", 12, 0);
  TextEncoder encoder{
      .word_embeddings = Embedding(embeddings / "word_embeddings", config.size("vocab_size", family.vocabulary), D),
      .segment_embeddings = Embedding(embeddings / "token_type_embeddings", config.size("type_vocab_size", 2), D),
      .positions = variant.added_positions(
          embeddings, D, [&] { return AddedPositions{LearnedPositions(embeddings / "position_embeddings", tokens, D).weight}; }),
      .norm = Norm(embeddings / "LayerNorm", D, options.eps),
      .last = final_norm(scope / "encoder.norm", variant.apply(options)),
      .dropout = options.branch.dropout,
      .causal = config.flag("is_decoder", false)};
  if (family.padding_id) encoder.padding_id = config.size("pad_token_id", *family.padding_id, 0);
  for (int64_t i = 0; i < layers; ++i)
    encoder.layers.push_back(make_encoder_layer(scope / "encoder.layer" / i, variant.apply(options, i, layers), kBertLayer));
  Bert bert{.encoder = encoder};
  if (pooled != Pooled::no) bert.pool = variant.pool(scope / "pooling", options);
  if (pooled == Pooled::transformed) bert.pooler = Linear(scope / "pooler.dense", D, D);
  return bert;
}

struct TokenHeadNames {
  const char *scope, *transform, *norm;
};
constexpr TokenHeadNames kBertHead{"cls.predictions", "transform.dense", "transform.LayerNorm"},
    kRobertaHead{"lm_head", "dense", "layer_norm"};

// Tied to the word embeddings unless config.json or the file says otherwise. The bias is stored as "bias", as "decoder.bias" or as both.
TokenHead make_token_head(const Scope& root, const Config& config, const Embedding& words, const TokenHeadNames& names,
                          Activation activation, bool shared) {
  const int64_t V = words.weight.size(0), D = words.weight.size(1);
  const Scope scope = root / names.scope;
  const std::string used = shared ? ".bias" : ".decoder.bias", other = shared ? ".decoder.bias" : ".bias";
  Params& params = scope.params();
  const bool keeps_both = params.file_names().empty() || (params.file_has(scope.path() + used) && params.file_has(scope.path() + other));
  if (!shared && keeps_both)
    scope.get("bias", {V}, initializer::zeros(), {.learned = false, .decays = false});  // unused, kept for other programs
  else
    params.alias(scope.path() + other, scope.path() + used);
  return {.transform = Linear(scope / names.transform, D, D),
          .norm = Norm(scope / names.norm, D, config.epsilon("layer_norm_eps", 1e-12f)),
          .activation = activation,
          .decoder = shared ? Linear(scope / "decoder", words.weight, scope.get("bias", {V}, initializer::zeros(), {.decays = false}))
                            : Linear(scope / "decoder", D, V, {.weight = scope.initializer().embedding})};
}

// The encoder below its prefix, and the head for masked tokens, which may share the word embeddings.
std::pair<Bert, TokenHead> make_with_token_head(const Scope& scope, const Config& config, const BertFamily& family, Pooled pooled) {
  const bool roberta = family.padding_id.has_value();
  const TokenHeadNames& names = roberta ? kRobertaHead : kBertHead;
  const bool shared = tied(scope, config, true, std::string(names.scope) + ".decoder.weight", family.base + "." + kWords);
  const Bert bert = make_bert(scope / family.base, config, family, pooled);
  const Activation activation = roberta ? Activation::gelu : config.activation("hidden_act", "gelu");
  return {bert, make_token_head(scope, config, bert.encoder.word_embeddings, names, activation, shared)};
}

Scope initialized(const Scope& root, const Config& config) { return root.with(initializer_from(config, "initializer_range", true)); }

Network bert_inner(const Scope& root, const Config& config, const BertFamily& family) {
  const bool pools = root.provides("pooler.dense.weight");
  const Bert bert = make_bert(initialized(root, config), config, family, pools ? Pooled::transformed : Pooled::no);
  const auto head = [pools, pooled = bert.pooled()](const HeadInput& in, TensorMap& out) {
    out["last_hidden_state"] = in.x;
    if (pools) out["pooler_output"] = pooled(in);
  };
  return text_network(bert.encoder, Reads::all, head, {});
}

Network bert_masked(const Scope& root, const Config& config, const BertFamily& family) {
  const auto [bert, head] = make_with_token_head(initialized(root, config), config, family, Pooled::no);
  return text_network(bert.encoder, Reads::labelled, masked_tokens(head));
}

Network bert_next(const Scope& root, const Config& config, const BertFamily& family) {
  const Scope scope = initialized(root, config);
  const Bert bert = make_bert(scope / family.base, config, family, Pooled::transformed);
  const Linear linear(scope / "cls.seq_relationship", bert.encoder.width(), 2);
  const auto head = [=, pooled = bert.pooled()](const HeadInput& in, TensorMap& out) {
    out["logits"] = linear(pooled(in));
    if (in.labels.defined()) out["loss"] = token_loss(out["logits"], in.labels, in.options);
  };
  return text_network(bert.encoder, reads_of(bert.pool), head);
}

// Masked tokens and next sentences.
Network bert_pretraining(const Scope& root, const Config& config, const BertFamily& family) {
  const Scope scope = initialized(root, config);
  const auto [bert, tokens] = make_with_token_head(scope, config, family, Pooled::transformed);
  const Linear next(scope / "cls.seq_relationship", bert.encoder.width(), 2);
  const auto head = [next, tokens = tokens, pooled = bert.pooled()](const HeadInput& in, TensorMap& out) {
    const Tensor follows = optional_input(in.inputs, "next_sentence_label");
    // `transformers` has a loss only if both labels are present; with loss_only, either one is enough.
    const bool counts = in.options.loss_only || (in.labels.defined() && follows.defined());
    if (in.labels.defined() || !in.options.loss_only) tokens(in, counts ? in.labels : Tensor(), out, "prediction_logits");
    out["seq_relationship_logits"] = next(pooled(in));
    if (!counts || !follows.defined()) return;
    const Tensor loss = token_loss(out["seq_relationship_logits"], follows, in.options);
    out["loss"] = in.labels.defined() ? out["loss"] + loss : loss;
  };
  return text_network(bert.encoder, bert.pool.kind == Pooling::class_token ? Reads::labelled : Reads::all, head,
                      {"labels", "next_sentence_label"});
}

Network bert_sentences(const Scope& root, const Config& config, const BertFamily& family) {
  const Scope scope = initialized(root, config);
  const bool roberta = family.padding_id.has_value();
  const Bert bert = make_bert(scope / family.base, config, family, roberta ? Pooled::yes : Pooled::transformed);
  const int64_t D = bert.encoder.width();
  const float dropout = config.probability("classifier_dropout", bert.encoder.dropout);
  const Scope classifier = scope / "classifier";
  SentencePooler pooled = bert.pooled();
  if (roberta)  // its pooler is a part of the head
    pooled = [dropout, dense = Linear(classifier / "dense", D, D), first = pooled_by(bert.pool)](const HeadInput& in) {
      return dense(heed::dropout(first(in), dropout, in.options.mode), Activation::tanh);
    };
  const Linear linear(roberta ? classifier / "out_proj" : classifier, D, config.labels());
  return text_network(bert.encoder, reads_of(bert.pool), sequence_classes(pooled, linear, dropout, config));
}

Network bert_words(const Scope& root, const Config& config, const BertFamily& family) {
  const Scope scope = initialized(root, config);
  const TextEncoder encoder = make_bert(scope / family.base, config, family, Pooled::no).encoder;
  const Linear linear(scope / "classifier", encoder.width(), config.labels());
  return text_network(encoder, Reads::all, token_classes(linear, config.probability("classifier_dropout", encoder.dropout)));
}

Network bert_answers(const Scope& root, const Config& config, const BertFamily& family) {
  const Scope scope = initialized(root, config);
  const TextEncoder encoder = make_bert(scope / family.base, config, family, Pooled::no).encoder;
  return text_network(encoder, Reads::all, answer_spans(scope, encoder.width(), 0), kAnswerInputs);
}

Family bert_family(const std::string& model_type, const BertFamily& family) {
  return {.model_type = model_type,
          .base = family.base,
          .tokens = true,
          .segments = !family.padding_id,
          .positions = [family](const Config& config) { return bert_tokens(config, family); },
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
          .task_parts = {"pooler.", "pooling."}};
}

}  // namespace

LayerOptions bert_layer_options(const Config& config) {
  return {.attention = {.width = config.size("hidden_size", 768),
                        .heads = config.size("num_attention_heads", 12),
                        .dropout = config.probability("attention_probs_dropout_prob", 0.1f),
                        .names = {"self.query", "self.key", "self.value", "", "output.dense"}},
          .feed_forward = {.hidden_width = config.size("intermediate_size", 3072),
                           .activation = config.activation("hidden_act", "gelu"),
                           .names = {.up = "intermediate.dense", .down = "output.dense"}},
          .eps = config.epsilon("layer_norm_eps", 1e-12f),
          .branch = {.dropout = config.probability("hidden_dropout_prob", 0.1f)}};
}

TokenHead bert_token_head(const Scope& scope, const Config& config, const Embedding& words, bool shared) {
  return make_token_head(scope, config, words, kBertHead, config.activation("hidden_act", "gelu"), shared);
}

Architectures bert_architectures() {
  const auto with = [](const BertFamily& family, auto make) {
    return [=](const Scope& scope, const Config& config) { return make(scope, config, family); };
  };
  Architectures all = of_family(bert_family("bert", kBert),
                                {{"BertModel", ModelTask::features, with(kBert, bert_inner)},
                                 {"BertForPreTraining", ModelTask::pretraining, with(kBert, bert_pretraining)},
                                 {"BertForMaskedLM", ModelTask::masked_lm, with(kBert, bert_masked)},
                                 {"BertForNextSentencePrediction", ModelTask::next_sentence, with(kBert, bert_next)},
                                 {"BertForSequenceClassification", ModelTask::sequence_classification, with(kBert, bert_sentences)},
                                 {"BertForTokenClassification", ModelTask::token_classification, with(kBert, bert_words)},
                                 {"BertForQuestionAnswering", ModelTask::question_answering, with(kBert, bert_answers)}});
  for (const auto& [name, type, family] :
       {std::tuple<std::string, std::string, BertFamily>("Roberta", "roberta", kRoberta), {"XLMRoberta", "xlm-roberta", kXlmRoberta}}) {
    const Architectures more = of_family(
        bert_family(type, family), {{name + "Model", ModelTask::features, with(family, bert_inner)},
                                    {name + "ForMaskedLM", ModelTask::masked_lm, with(family, bert_masked)},
                                    {name + "ForSequenceClassification", ModelTask::sequence_classification, with(family, bert_sentences)},
                                    {name + "ForTokenClassification", ModelTask::token_classification, with(family, bert_words)},
                                    {name + "ForQuestionAnswering", ModelTask::question_answering, with(family, bert_answers)}});
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace heed
