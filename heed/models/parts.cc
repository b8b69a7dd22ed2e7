#include "heed/models/parts.h"

#include <algorithm>

namespace heed {

Tensor given(const Named& inputs, const std::string& name) {
  const auto found = inputs.find(name);
  return found == inputs.end() ? Tensor() : found->second;
}

Linear language_head(const Scope& scope, const Embedding& words, bool shared) {
  if (shared) return Linear(scope, words.weight);
  return Linear(scope / "lm_head", words.weight.size(1), words.weight.size(0), {.bias = false, .weight = scope.initial().embedding});
}

Tensor needed(const Named& inputs, const std::string& name) {
  const Tensor found = given(inputs, name);
  check(found.defined(), "model: the input '", name, "' is missing");
  return found;
}

Tensor tokens_in(const Named& inputs, const std::string& name) {
  const Tensor tokens = needed(inputs, name);
  check(tokens.rank() == 2 && !is_floating(tokens.dtype()) && tokens.size(1) > 0, "model: the input '", name, "' has shape ",
        tokens.shape(), " of ", name_of(tokens.dtype()), ", expected (B, N) of i64");
  return converted(tokens, DType::i64);
}

std::vector<std::vector<int64_t>> rows_of(const Tensor& x, int64_t B, int64_t N) {
  if (!x.defined()) return {};
  check(x.shape() == Shape{B, N}, "model: a mask of shape ", x.shape(), ", expected ", Shape{B, N});
  const std::vector<int64_t> flat = x.to_vector<int64_t>();
  std::vector<std::vector<int64_t>> rows;
  for (int64_t b = 0; b < B; ++b) rows.emplace_back(flat.begin() + b * N, flat.begin() + (b + 1) * N);
  return rows;
}

std::vector<Term> mask_terms(const Tensor& mask, int64_t B, int64_t N, int64_t M, bool causal) {
  std::vector<Term> terms;
  const std::vector<std::vector<int64_t>> rows = rows_of(mask, B, M);
  const auto all_seen = [](const std::vector<int64_t>& row) { return std::find(row.begin(), row.end(), 0) == row.end(); };
  const auto none_seen = [&](const std::vector<int64_t>& row) {  // by some query
    return causal ? row[0] == 0 : std::all_of(row.begin(), row.end(), [](int64_t key) { return key == 0; });
  };
  if (!std::any_of(rows.begin(), rows.end(), none_seen)) {
    if (causal) terms.emplace_back(Causal{});
    if (!std::all_of(rows.begin(), rows.end(), all_seen)) terms.emplace_back(Mask{reshape(converted(mask, DType::boolean), {B, 1, 1, M})});
    return terms;
  }
  constexpr float lowest = -1e30f;  // any score added to it is lost, so that keys beyond sight are alike but count
  const int64_t queries = causal ? N : 1;
  std::vector<float> bias;
  for (const std::vector<int64_t>& row : rows)
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < M; ++j) bias.push_back(row[static_cast<size_t>(j)] == 0 || (causal && j > i) ? lowest : 0);
  terms.emplace_back(Bias{Tensor::from(bias, {B, 1, queries, M})});
  return terms;
}

Tensor pool_text(const Pool& pool, const Tensor& x, const Tensor& mask, Mode mode) {
  const int64_t B = x.size(0), N = x.size(1);
  if (pool.kind == Pooling::attention) return pool.attention(x, {.terms = mask_terms(mask, B, 1, N, false)}, mode);
  if (pool.kind == Pooling::class_token || !mask.defined()) return pool(x, mode);
  check(pool.kind == Pooling::mean, "model: sentences of any length cannot be flattened");
  const Tensor seen = reshape(converted(mask, DType::f32), {B, 1, N});
  return reshape(matmul(seen / sum(seen, {2}, true), x), {B, x.size(2)});
}

Norm last_norm(const Scope& scope, const LayerOptions& options) {
  return options.place == NormPlace::before ? Norm(scope, options.attention.width, options.eps, options.norm) : Norm();
}

void Witness::tell(Named& out, int64_t layers, const std::string& prefix, bool cross) const {
  for (size_t i = 0; i < states_.size(); ++i) out[prefix + "hidden_states." + std::to_string(i)] = states_[i];
  if (!tap_) return;
  const int64_t each = cross ? 2 : 1;
  check(std::ssize(tap_->looks()) == layers * each, "model: ", tap_->looks().size(), " attention maps of ", layers * each,
        " were seen; this kind of attention has none to show");
  for (int64_t i = 0; i < layers; ++i) {
    out[prefix + "attentions." + std::to_string(i)] = tap_->looks()[static_cast<size_t>(i * each)].probabilities;
    if (cross) out["cross_attentions." + std::to_string(i)] = tap_->looks()[static_cast<size_t>(i * each + 1)].probabilities;
  }
}

Tensor run_layers(const std::vector<EncoderLayer>& layers, Tensor x, const AttentionOptions& options, const Ask& ask, Witness& witness,
                  const Tensor& positions, const Tensor& wanted) {
  witness.state(x);
  for (const EncoderLayer& layer : layers) {
    x = layer(x, options, ask.mode, {.positions = positions, .wanted = &layer == &layers.back() ? wanted : Tensor()});
    witness.state(x);
  }
  return x;
}

bool may_leave_out(const std::vector<EncoderLayer>& layers, const AttentionOptions& options, const Ask& ask) {
  return ask.loss_only && !ask.hidden_states && !ask.attentions && !AttentionTap::newest() && !layers.empty() &&
         layers.back().attention.picks(options);
}

NextTokens next_tokens(Writing& texts, int64_t B, int64_t n) {
  if (texts.seen.empty()) return {};
  const int64_t before = texts.length(), total = before + n;
  std::vector<int64_t> positions, mask;
  for (std::vector<int64_t>& row : texts.seen) {
    row.resize(static_cast<size_t>(total), 1);  // what was written is seen
    int64_t place = -1;
    for (int64_t j = 0; j < total; ++j) {
      place += row[static_cast<size_t>(j)];
      if (j >= before) positions.push_back(std::max<int64_t>(place, 0));
    }
    mask.insert(mask.end(), row.begin(), row.end());
  }
  const Tensor keep = reshape(converted(Tensor::from(mask, {B, total}), DType::boolean), {B, 1, 1, total});
  return {.options = {.terms = {Mask{keep}}}, .positions = Tensor::from(positions, {B, n})};
}

Tensor classification_loss(const Tensor& logits, const Tensor& labels, const Config& config, const Ask& ask) {
  const int64_t classes = logits.size(-1);
  const std::string guess = classes == 1                  ? "regression"
                            : is_floating(labels.dtype()) ? "multi_label_classification"
                                                          : "single_label_classification";
  const std::string problem = config.word("problem_type", guess);
  if (problem == "single_label_classification") return token_loss(logits, labels, ask);
  check(labels.count() == logits.count(), "model: labels of shape ", labels.shape(), ", expected as many as the logits ", logits.shape());
  const Tensor targets = reshape(converted(labels, DType::f32), logits.shape());
  if (problem == "regression") return mean_squared_error(logits, targets);
  if (problem == "multi_label_classification") return mean(softplus(logits) - logits * targets);
  config.refuse("problem_type", "regression, single_label_classification or multi_label_classification");
}

Tensor token_loss(const Tensor& logits, const Tensor& labels, const Ask& ask) {
  check(labels.count() * logits.size(-1) == logits.count(), "model: labels of shape ", labels.shape(), " beside logits ", logits.shape());
  return cross_entropy(reshape(logits, {-1, logits.size(-1)}), reshape(converted(labels, DType::i64), {-1}),
                       {.label_smoothing = ask.label_smoothing, .class_weights = {}});
}

void tell_words(Named& out, const std::string& name, const Linear& words, const Tensor& x, const Tensor& labels, const Ask& ask,
                const std::function<Tensor(const Tensor&)>& before) {
  const auto states_of = [&](const Tensor& tokens) { return before ? before(tokens) : tokens; };
  if (!labels.defined() || !ask.loss_only || words.packed) {
    out[name] = words(states_of(x));
    if (labels.defined()) out["loss"] = token_loss(out[name], labels, ask);
    return;
  }
  const int64_t rows = x.size(0) * x.size(1);
  check(labels.count() == rows, "model: labels of shape ", labels.shape(), " beside states ", x.shape());
  std::vector<int64_t> places, targets;  // a head over thousands of words is most of a small model: only where it is asked
  const std::vector<int64_t> all = labels.to_vector<int64_t>();
  for (int64_t i = 0; i < rows; ++i)
    if (all[static_cast<size_t>(i)] != -100) {
      places.push_back(i);
      targets.push_back(all[static_cast<size_t>(i)]);
    }
  const int64_t kept = std::ssize(places);
  const Tensor states = reshape(x, {rows, x.size(2)});
  const Tensor asked = kept == rows ? states : index_select(states, 0, Tensor::from(places, {kept}));
  out["loss"] = linear_cross_entropy(states_of(asked), words.weight, words.bias, Tensor::from(targets, {kept}),
                                     {.label_smoothing = ask.label_smoothing, .class_weights = {}});
}

Tensor labels_of_next(const Tensor& labels) {
  if (!labels.defined()) return labels;
  check(labels.rank() == 2, "model: labels of shape ", labels.shape(), ", expected (B, N)");
  const int64_t B = labels.size(0), N = labels.size(1);
  if (N == 0) return labels;
  return concat({slice(converted(labels, DType::i64), 1, 1, N), Tensor::full({B, 1}, -100, DType::i64)}, 1);
}

Initialisation beginning(const Config& config, std::string_view key, bool truncated) {
  const float deviation = config.number(key, 0.02f, 0, 100);
  const Initialiser draw = truncated ? initial::truncated_normal(deviation) : initial::normal(deviation);
  return {.weight = draw, .residual = draw, .embedding = draw, .patch = draw, .position = draw};
}

bool tied(const Scope& scope, const Config& config, bool otherwise, const std::string& other, const std::string& name) {
  if (!config.flag("tie_word_embeddings", otherwise) || scope.params().file_differs(other, name)) return false;
  scope.params().alias(other, name);
  return true;
}

}  // namespace heed
