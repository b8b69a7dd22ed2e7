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

Tensor position_input(const TensorMap& inputs, const ForwardOptions& options) {
  const Tensor given = optional_input(inputs, "position_ids");
  std::vector<int64_t> out;
  const int64_t B = required_input(inputs, "input_ids").size(0);
  if (given.defined() && given.rank() == 2 && given.size(0) == 1 && B > 1) {  // one row for all sequences
    const std::vector<int64_t> row = given.to_vector<int64_t>();
    for (int64_t b = 0; b < B; ++b) out.insert(out.end(), row.begin(), row.end());
    return Tensor::from(out, {B, std::ssize(row)}, kCpu);
  }
  if (given.defined() || options.sequences.empty()) return given;
  for (const int64_t tokens : options.sequences)
    for (int64_t i = 0; i < tokens; ++i) out.push_back(i);
  return Tensor::from(out, {1, std::ssize(out)}, kCpu);
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

namespace {

Tensor pool_batch(const Pool& pool, const Tensor& x, const Tensor& mask, Mode mode) {
  const int64_t B = x.size(0), N = x.size(1);
  if (pool.kind == Pooling::attention) return pool.attention(x, {.terms = mask_terms(mask, B, 1, N, false, x.device())}, mode);
  if (pool.kind == Pooling::class_token || !mask.defined()) return pool(x, mode);
  check(pool.kind == Pooling::mean, "model: heed.pooling flatten with sentences of different lengths, expected cls, gap or map");
  const Tensor weights = reshape(converted(mask, DType::f32), {B, 1, N}).to(x.device());
  return reshape(matmul(weights / sum(weights, {2}, true), x), {B, x.size(2)});
}

}  // namespace

Tensor pool_text(const Pool& pool, const Tensor& x, const Tensor& mask, const ForwardOptions& options) {
  if (options.sequences.empty()) return pool_batch(pool, x, mask, options.mode);
  Tensors rows;
  int64_t begin = 0;
  for (const int64_t tokens : options.sequences) {
    rows.push_back(pool_batch(pool, slice(x, 1, begin, begin + tokens), {}, options.mode));
    begin += tokens;
  }
  return concat(rows, 0);
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
                  OutputCollector& collector, const Tensor& positions, const Tensor& query_rows) {
  collector.state(x);
  x = in_precision(x, options.precision);
  AttentionContext context{.positions = positions};
  for (const int64_t tokens : options.sequences) context.sequences.push_back({tokens});
  Residual state{x};
  x = {};
  for (const EncoderLayer& layer : layers) {
    if (&layer == &layers.back()) context.query_rows = query_rows;
    state = layer.extend(std::move(state), attention, options.mode, context);
    if (!options.hidden_states) continue;
    state = {state.total()};
    collector.state(state.sum);
  }
  return in_precision(state.total(), DType::f32);
}

Tensor first_rows(int64_t B, int64_t N) {
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < B; ++b) rows.push_back(b * N);
  return Tensor::from(rows, {B, 1}, kCpu);
}

bool can_skip_tokens(const std::vector<EncoderLayer>& layers, const AttentionOptions& attention, const ForwardOptions& options) {
  return options.loss_only && !options.hidden_states && !options.attentions && !AttentionTap::newest() && !layers.empty() &&
         options.sequences.empty() && layers.back().attention.can_select_queries(attention);
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

namespace {

struct LabelledRows {
  Tensor states, targets;  // (K, D), (K)
};

// The head dominates the cost of small models: compute only tokens with a label.
LabelledRows labelled_rows(const Tensor& x, const Tensor& labels, const Tensor& places) {
  const int64_t rows = x.size(0) * x.size(1);
  const Tensor states = reshape(x, {rows, x.size(2)});
  if (places.defined()) {
    check(places.shape() == labels.shape(), "model: labels of shape ", labels.shape(), " for label_places of shape ", places.shape());
    return {index_select(states, 0, places.to(x.device())), labels.to(x.device())};
  }
  check(labels.count() == rows, "model: labels of shape ", labels.shape(), " for states ", x.shape());
  if (labels.device() != kCpu) return {states, reshape(converted(labels, DType::i64), {rows})};
  std::vector<int64_t> indices, targets;
  const std::vector<int64_t> all = labels.to_vector<int64_t>();
  for (int64_t i = 0; i < rows; ++i)
    if (all[static_cast<size_t>(i)] != -100) {
      indices.push_back(i);
      targets.push_back(all[static_cast<size_t>(i)]);
    }
  const int64_t count = std::ssize(indices);
  return {count == rows ? states : index_select(states, 0, Tensor::from(indices, {count}, x.device())),
          Tensor::from(targets, {count}, x.device())};
}

}  // namespace

void add_token_logits(TensorMap& out, const std::string& name, const Linear& head, const Tensor& x, const Tensor& labels,
                      const ForwardOptions& options, const std::function<Tensor(const Tensor&)>& transform, const Tensor& places) {
  const auto states_of = [&](const Tensor& tokens) { return transform ? transform(tokens) : tokens; };
  if (!labels.defined() || !options.loss_only || head.packed) {
    out[name] = head(states_of(x));
    if (labels.defined()) out["loss"] = token_loss(out[name], labels, options);
    return;
  }
  const LabelledRows rows = labelled_rows(x, labels, places);
  const ModuleScope module(head.name);
  const Tensor read = states_of(head_states(rows.states, options));
  out["loss"] = module.call({&read, &head.weight}, linear_cross_entropy(read, head.weight, head.bias, rows.targets,
                                                                        {.label_smoothing = options.label_smoothing, .class_weights = {}}));
}

Tensor shift_labels(const Tensor& labels) {
  if (!labels.defined()) return labels;
  check(labels.rank() == 2, "model: labels of shape ", labels.shape(), ", expected (B, N)");
  if (labels.size(1) == 0) return labels;
  if (labels.device() != kCpu) {
    const int64_t N = labels.size(1);
    const Tensor shifted = Tensor::full(labels.shape(), -100, DType::i64, labels.device());
    copy_into(slice(labels, 1, 1, N), slice(shifted, 1, 0, N - 1));
    return shifted;
  }
  std::vector<int64_t> out;  // computed here and not by ops: a dry run needs the values
  for (const std::vector<int64_t>& row : rows_of(labels, labels.size(0), labels.size(1))) {
    out.insert(out.end(), row.begin() + 1, row.end());
    out.push_back(-100);
  }
  return Tensor::from(out, labels.shape(), kCpu);
}

bool has_window(const Config& config, int64_t layer, bool fallback) {
  if (!config.has("layer_types")) return fallback;
  const std::vector<JsonReader> types = config.at("layer_types").list();
  if (layer >= std::ssize(types)) config.refuse("layer_types", "a type for every layer");
  const JsonReader& type = types[static_cast<size_t>(layer)];
  if (type.text() != "sliding_attention" && type.text() != "full_attention") type.expected("sliding_attention or full_attention");
  return type.text() == "sliding_attention";
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
