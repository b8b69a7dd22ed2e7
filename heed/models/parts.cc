#include "heed/models/parts.h"

#include <algorithm>

namespace heed {

Tensor optional_input(const TensorMap& inputs, const std::string& name) {
  const auto found = inputs.find(name);
  return found == inputs.end() ? Tensor() : found->second;
}

Linear language_head(const Scope& scope, const Embedding& word_embeddings, bool shared) {
  const Tensor& weight = word_embeddings.weight;
  if (shared) return Linear(scope / "lm_head", weight);
  return Linear(scope / "lm_head", weight.size(1), weight.size(0), {.bias = false, .weight = scope.initializer().embedding});
}

Tensor required_input(const TensorMap& inputs, const std::string& name) {
  const Tensor found = optional_input(inputs, name);
  check(found.defined(), "model: the input '", name, "' is missing");
  return found;
}

Tensor token_input(const TensorMap& inputs, const std::string& name) {
  const Tensor tokens = required_input(inputs, name);
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

std::vector<Term> mask_terms(const Tensor& mask, int64_t B, int64_t N, int64_t M, bool causal, Device device) {
  std::vector<Term> terms;
  const std::vector<std::vector<int64_t>> rows = rows_of(mask, B, M);
  const auto all_visible = [](const std::vector<int64_t>& row) { return std::find(row.begin(), row.end(), 0) == row.end(); };
  const auto none_visible = [&](const std::vector<int64_t>& row) {  // to some query
    return causal ? row[0] == 0 : std::all_of(row.begin(), row.end(), [](int64_t key) { return key == 0; });
  };
  if (!std::any_of(rows.begin(), rows.end(), none_visible)) {
    if (causal) terms.emplace_back(Causal{});
    if (!std::all_of(rows.begin(), rows.end(), all_visible))
      terms.emplace_back(Mask{reshape(converted(mask, DType::boolean), {B, 1, 1, M}).to(device)});
    return terms;
  }
  constexpr float lowest = -1e30f;  // absorbs any score, so that masked keys have equal weights if all keys are masked
  const int64_t queries = causal ? N : 1;
  std::vector<float> bias;
  for (const std::vector<int64_t>& row : rows)
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < M; ++j) bias.push_back(row[static_cast<size_t>(j)] == 0 || (causal && j > i) ? lowest : 0);
  terms.emplace_back(Bias{Tensor::from(bias, {B, 1, queries, M}, device)});
  return terms;
}

Tensor pool_text(const Pool& pool, const Tensor& x, const Tensor& mask, Mode mode) {
  const int64_t B = x.size(0), N = x.size(1);
  if (pool.kind == Pooling::attention) return pool.attention(x, {.terms = mask_terms(mask, B, 1, N, false, x.device())}, mode);
  if (pool.kind == Pooling::class_token || !mask.defined()) return pool(x, mode);
  check(pool.kind == Pooling::mean, "model: heed.pooling flatten with sentences of different lengths, expected cls, gap or map");
  const Tensor weights = reshape(converted(mask, DType::f32), {B, 1, N}).to(x.device());
  return reshape(matmul(weights / sum(weights, {2}, true), x), {B, x.size(2)});
}

Norm final_norm(const Scope& scope, const LayerOptions& options) {
  return options.place == NormPlace::before ? Norm(scope, options.attention.width, options.eps, options.norm) : Norm();
}

void OutputCollector::add_outputs(TensorMap& out, int64_t layers, const std::string& prefix, bool cross) const {
  for (size_t i = 0; i < states_.size(); ++i) out[prefix + "hidden_states." + std::to_string(i)] = states_[i];
  if (!tap_) return;
  const int64_t each = cross ? 2 : 1;
  check(std::ssize(tap_->looks()) == layers * each, "model: ", tap_->looks().size(), " attention maps, expected ", layers * each,
        "; this kind of attention has none");
  for (int64_t i = 0; i < layers; ++i) {
    out[prefix + "attentions." + std::to_string(i)] = tap_->looks()[static_cast<size_t>(i * each)].probabilities;
    if (cross) out["cross_attentions." + std::to_string(i)] = tap_->looks()[static_cast<size_t>(i * each + 1)].probabilities;
  }
}

Tensor run_layers(const std::vector<EncoderLayer>& layers, Tensor x, const AttentionOptions& attention, const ForwardOptions& options,
                  OutputCollector& collector, const Tensor& positions, const Tensor& query_indices) {
  collector.state(x);
  x = in_precision(x, options.precision);
  for (const EncoderLayer& layer : layers) {
    const Tensor indices = &layer == &layers.back() ? query_indices : Tensor();
    x = layer(x, attention, options.mode, {.positions = positions, .query_indices = indices});
    collector.state(x);
  }
  return in_precision(x, DType::f32);
}

bool can_skip_tokens(const std::vector<EncoderLayer>& layers, const AttentionOptions& attention, const ForwardOptions& options) {
  return options.loss_only && !options.hidden_states && !options.attentions && !AttentionTap::newest() && !layers.empty() &&
         layers.back().attention.can_select_queries(attention);
}

NextTokens next_tokens(DecodeState& state, int64_t B, int64_t n, Device device) {
  if (state.mask.empty()) return {};
  const int64_t before = state.length(), total = before + n;
  std::vector<int64_t> positions, mask;
  for (std::vector<int64_t>& row : state.mask) {
    row.resize(static_cast<size_t>(total), 1);  // generated tokens are visible
    int64_t position = -1;
    for (int64_t j = 0; j < total; ++j) {
      position += row[static_cast<size_t>(j)];
      if (j >= before) positions.push_back(std::max<int64_t>(position, 0));
    }
    mask.insert(mask.end(), row.begin(), row.end());
  }
  const Tensor keep = reshape(converted(Tensor::from(mask, {B, total}, device), DType::boolean), {B, 1, 1, total});
  return {.options = {.terms = {Mask{keep}}}, .positions = Tensor::from(positions, {B, n}, kCpu)};
}

Tensor classification_loss(const Tensor& logits, const Tensor& labels, const Config& config, const ForwardOptions& options) {
  const int64_t classes = logits.size(-1);
  const std::string inferred = classes == 1                  ? "regression"
                               : is_floating(labels.dtype()) ? "multi_label_classification"
                                                             : "single_label_classification";
  const std::string problem = config.string("problem_type", inferred);
  if (problem == "single_label_classification") return token_loss(logits, labels, options);
  check(labels.count() == logits.count(), "model: labels of shape ", labels.shape(), ", expected as many as the logits ", logits.shape());
  const Tensor targets = reshape(converted(labels, DType::f32), logits.shape()).to(logits.device());
  if (problem == "regression") return mean_squared_error(logits, targets);
  if (problem == "multi_label_classification") return mean(softplus(logits) - logits * targets);
  config.refuse("problem_type", "regression, single_label_classification or multi_label_classification");
}

Tensor token_loss(const Tensor& logits, const Tensor& labels, const ForwardOptions& options) {
  check(labels.count() * logits.size(-1) == logits.count(), "model: labels of shape ", labels.shape(), " for logits ", logits.shape());
  return cross_entropy(reshape(logits, {-1, logits.size(-1)}), reshape(converted(labels, DType::i64), {-1}).to(logits.device()),
                       {.label_smoothing = options.label_smoothing, .class_weights = {}});
}

void add_token_logits(TensorMap& out, const std::string& name, const Linear& head, const Tensor& x, const Tensor& labels,
                      const ForwardOptions& options, const std::function<Tensor(const Tensor&)>& transform) {
  const auto states_of = [&](const Tensor& tokens) { return transform ? transform(tokens) : tokens; };
  if (!labels.defined() || !options.loss_only || head.packed) {
    out[name] = head(states_of(x));
    if (labels.defined()) out["loss"] = token_loss(out[name], labels, options);
    return;
  }
  const int64_t rows = x.size(0) * x.size(1);
  check(labels.count() == rows, "model: labels of shape ", labels.shape(), " for states ", x.shape());
  std::vector<int64_t> indices, targets;  // the head dominates the cost of small models: compute only tokens with a label
  const std::vector<int64_t> all = labels.to_vector<int64_t>();
  for (int64_t i = 0; i < rows; ++i)
    if (all[static_cast<size_t>(i)] != -100) {
      indices.push_back(i);
      targets.push_back(all[static_cast<size_t>(i)]);
    }
  const int64_t count = std::ssize(indices);
  const Tensor states = reshape(x, {rows, x.size(2)});
  const ModuleScope module(head.name);
  const Tensor labelled = count == rows ? states : index_select(states, 0, Tensor::from(indices, {count}, x.device()));
  const Tensor read = states_of(labelled);
  out["loss"] =
      module.call({&read, &head.weight}, linear_cross_entropy(read, head.weight, head.bias, Tensor::from(targets, {count}, x.device()),
                                                              {.label_smoothing = options.label_smoothing, .class_weights = {}}));
}

Tensor shift_labels(const Tensor& labels) {
  if (!labels.defined()) return labels;
  check(labels.rank() == 2, "model: labels of shape ", labels.shape(), ", expected (B, N)");
  std::vector<int64_t> shifted;  // on the host, where add_token_logits reads them, also in a dry run
  for (std::vector<int64_t>& row : rows_of(labels, labels.size(0), labels.size(1))) {
    shifted.insert(shifted.end(), row.begin() + (row.empty() ? 0 : 1), row.end());
    if (!row.empty()) shifted.push_back(-100);
  }
  return Tensor::from(shifted, labels.shape(), kCpu);
}

Initializers initializer_from(const Config& config, std::string_view key, bool truncated) {
  const float deviation = config.number(key, 0.02f, 0, 100);
  const Initializer draw = truncated ? initializer::truncated_normal(deviation) : initializer::normal(deviation);
  return {.weight = draw, .residual = draw, .embedding = draw, .patch = draw, .position = draw};
}

bool tied(const Scope& scope, const Config& config, bool fallback, const std::string& other, const std::string& name) {
  if (!config.flag("tie_word_embeddings", fallback) || scope.params().file_differs(other, name)) return false;
  scope.params().alias(other, name);
  return true;
}

}  // namespace heed
