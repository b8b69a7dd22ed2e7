#include "heed/models/token_steps.h"

#include <algorithm>

#include "heed/core/copy.h"
#include "heed/ops/sample_tokens.h"

namespace heed {
namespace {

int64_t head_width(const MultiHeadAttention& layer) { return layer.qkv.outputs() / (layer.heads + 2 * layer.key_heads); }

// The weights of a layer as the kernels read them.
RowLayer row_layer(const Linear& linear, const Norm& norm, DType precision, Activation activation = Activation::none) {
  if (!linear.packed) return {};
  return {.weight = linear.packed->rows(precision),
          .scales = linear.packed->scales(),
          .bias = linear.bias,
          .norm_weight = norm.weight,
          .norm_bias = norm.bias,
          .eps = norm.eps,
          .activation = activation};
}

// The sliding window of a layer; -1: none. nullopt: the layer has other score terms, which steps do not support.
std::optional<int64_t> window_before(const MultiHeadAttention& layer) {
  int64_t before = -1;
  for (const ScorePositions& position : layer.positions) {
    const auto* const term = std::get_if<Term>(&position);
    const auto* const window = term ? std::get_if<Window>(term) : nullptr;
    if (!window || window->globals != 0 || before >= 0) return {};
    before = window->before;
  }
  return before;
}

bool supports_linear(const Linear& linear, int64_t rows, DType precision) {
  if (!linear.packed) return false;
  const Tensor weight = linear.packed->rows(precision);
  return weight.defined() && row_linear_supports(weight, rows, linear.inputs());
}

bool supports_layer(const EncoderLayer& layer, int64_t B, DType precision) {
  const MultiHeadAttention& attention = layer.attention;
  const FeedForward& mlp = layer.feed_forward;
  const auto linear = [&](const Linear& each) { return supports_linear(each, B, precision); };
  return layer.place == NormPlace::before && linear(attention.qkv) && linear(attention.output) && linear(mlp.up) && linear(mlp.down) &&
         (!mlp.gate.defined() || linear(mlp.gate)) && mlp.up.outputs() == mlp.down.inputs() &&
         attention.kind.kind == AttentionKind::Kind::soft && !attention.beta.tensor.defined() && window_before(attention) &&
         !(attention.rotary && attention.rotary->long_texts) && cached_attention_supports(head_width(attention), precision);
}

Tensor rows_of_positions(const AddedPositions& positions) {
  const Tensor& table = positions.table;
  return table.defined() ? reshape(table, {table.size(-2), table.size(-1)}) : Tensor();
}

}  // namespace

TokenSteps::TokenSteps(const CausalModel& model, const DecodeState& state, const Tensor& logits, const TokenStepsOptions& options)
    : table_(model.word_embeddings.weight),
      positions_(rows_of_positions(model.positions)),
      head_(row_layer(model.head, model.norm, options.precision)),
      options_(options),
      prompt_(state.length()),
      length_(prompt_),
      logits_(contiguous(logits)) {
  const int64_t B = logits.size(0);
  const Device device = logits.device();
  x_ = Tensor::empty({B, table_.size(1)}, DType::f32, device);
  written_.last = Tensor::zeros({B}, DType::i64, device);
  written_.lengths = Tensor::full({B}, static_cast<double>(prompt_ - 1), DType::i64, device);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const EncoderLayer& from = model.layers[i];
    const MultiHeadAttention& attention = from.attention;
    const FeedForward& mlp = from.feed_forward;
    const bool gated = mlp.gate.defined();
    const auto states = [&](const Linear& linear) { return Tensor::empty({B, linear.outputs()}, DType::f32, device); };
    Layer layer{.qkv = row_layer(attention.qkv, from.attention_norm, options.precision),
                .output = row_layer(attention.output, {}, options.precision),
                .up = row_layer(mlp.up, from.feed_forward_norm, options.precision, gated ? Activation::none : mlp.activation),
                .gate = row_layer(mlp.gate, from.feed_forward_norm, options.precision, mlp.activation),
                .down = row_layer(mlp.down, {}, options.precision),
                .heads = {.keys = state.past[i].keys(),
                          .values = state.past[i].values(),
                          .lengths = written_.lengths,
                          .before = *window_before(attention),
                          .beta = attention.beta.number_for(head_width(attention))},
                .rotary = attention.rotary,
                .projected = states(attention.qkv),
                .attended = Tensor::empty({B, attention.heads * head_width(attention)}, DType::f32, device),
                .hidden = states(mlp.up)};
    layers_.push_back(std::move(layer));
  }
  grow();
  choose();
}

// Replaces full caches by larger ones. The step is captured again, because its graph contains the old addresses.
void TokenSteps::grow() {
  constexpr int64_t chunk = CachedAttention::kChunk, usual = 4 * chunk;
  const int64_t wanted = std::min(options_.max_length, std::max(2 * length_, usual)), B = x_.size(0);
  capacity_ = std::max((wanted + chunk - 1) / chunk * chunk, (length_ + chunk) / chunk * chunk);
  const auto work = [this] {
    compute();
    return Tensors();
  };
  step_.emplace(x_.device(), nullptr, work, false);
  const Tensor all = Tensor::zeros({B, capacity_ + 1}, DType::i64, x_.device());
  if (written_.all.defined()) copy_into(written_.all, slice(all, 1, 0, written_.all.size(1)));
  written_.all = all;
  for (Layer& layer : layers_) {
    CachedHeads& heads = layer.heads;
    for (Tensor* const each : {&heads.keys, &heads.values}) {
      const Tensor larger = Tensor::empty({B, each->size(1), capacity_, each->size(3)}, options_.precision, x_.device());
      copy_into(slice(*each, 2, 0, length_), slice(larger, 2, 0, length_));
      *each = larger;
    }
    std::tie(heads.tickets, heads.parts) = cached_attention_scratch(heads.keys, layer.attended.size(1) / heads.keys.size(3));
    if (!layer.rotary) continue;
    const int64_t rows = std::min(capacity_, layer.rotary->cosine.positions());
    heads.cosine = layer.rotary->cosine.rows(rows, x_.device());
    heads.sine = layer.rotary->sine.rows(rows, x_.device());
    heads.rotated = layer.rotary->rotated;
    heads.halves = layer.rotary->pairing == Pairing::halves;
  }
}

void TokenSteps::compute() {
  embed_last_tokens(table_, positions_, written_, x_);
  for (const Layer& layer : layers_) {
    row_linear(layer.qkv, x_, layer.projected);
    cached_attention(layer.heads, layer.projected, layer.attended);
    row_linear(layer.output, layer.attended, x_, {}, x_);
    row_linear(layer.up, x_, layer.hidden);
    if (layer.gate.weight.defined()) row_linear(layer.gate, x_, layer.hidden, layer.hidden);
    row_linear(layer.down, layer.hidden, x_, {}, x_);
  }
  row_linear(head_, x_, logits_);
  choose();
}

void TokenSteps::choose() {
  if (!options_.sampling) return append_best_tokens(logits_, written_);
  const Sampling& s = *options_.sampling;
  append_sampled_tokens(
      logits_, {.temperature = s.temperature, .top_k = s.top_k, .top_p = s.top_p, .min_p = s.min_p, .seed = s.seed, .first = prompt_},
      written_);
}

std::vector<std::vector<int64_t>> TokenSteps::next(int64_t count) {
  const NoGrad quiet;
  while (length_ - prompt_ + 1 < read_ + count) {  // after s steps, s + 1 tokens are chosen
    if (length_ + 1 > capacity_) grow();
    step_->run();
    ++length_;
  }
  const int64_t begin = prompt_ + read_, B = x_.size(0);
  const std::vector<int64_t> chosen = slice(written_.all, 1, begin, begin + count).to_vector<int64_t>();
  read_ += count;
  std::vector<std::vector<int64_t>> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t b = 0; b < B; ++b) out[static_cast<size_t>(i)].push_back(chosen[static_cast<size_t>(b * count + i)]);
  return out;
}

std::shared_ptr<TokenSteps> token_steps(const CausalModel& model, const DecodeState& state, const Tensor& logits,
                                        const TokenStepsOptions& options) {
  const Tensor positions = rows_of_positions(model.positions);
  const int64_t B = logits.size(0);
  const bool supported = logits.device() != kCpu && state.mask.empty() && state.memory.empty() && !state.past.empty() &&
                         !model.positions.computed && !model.positions.grid &&
                         (!positions.defined() || options.max_length - 1 <= positions.size(0)) &&
                         supports_linear(model.head, B, options.precision) &&
                         std::all_of(model.layers.begin(), model.layers.end(), [&](const EncoderLayer& layer) {
                           return supports_layer(layer, B, options.precision) &&
                                  (!layer.attention.rotary || options.max_length - 1 <= layer.attention.rotary->cosine.positions());
                         });
  return supported ? std::make_shared<TokenSteps>(model, state, logits, options) : nullptr;
}

}  // namespace heed
