#include "heed/nn/multi_head.h"

#include <algorithm>

#include "heed/attention/channel_attention.h"
#include "heed/core/bf16_copy.h"
#include "heed/core/parallel.h"
#include "heed/ops/linear_parts.h"

namespace heed {
namespace {

// (B, N, H D) -> (B, H, N, D)
Tensor split_heads(const Tensor& x, int64_t heads) {
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / std::max<int64_t>(heads, 1)}), 1, 2);
}

// Layers with the same input, which GPUs compute as one product: what is needed of them.
struct JoinedProjection {
  Tensors weights = {}, biases = {};

  explicit JoinedProjection(std::initializer_list<const Linear*> layers) {
    for (const Linear* layer : layers) {
      weights.push_back(layer->weight);
      biases.push_back(layer->bias);
    }
  }
  bool has_all() const {
    return std::all_of(weights.begin(), weights.end(), [](const Tensor& weight) { return weight.defined(); });
  }
  // Their bf16 copies will lie one after the other.
  void adjoin() const {
    const auto fits = [](const Tensor& x) { return x.device() != kCpu && x.dtype() == DType::f32 && x.is_contiguous(); };
    if (!has_all() || !std::all_of(weights.begin(), weights.end(), fits)) return;
    adjoin_bf16_copies(weights);
    if (std::all_of(biases.begin(), biases.end(), [&](const Tensor& bias) { return bias.defined() && fits(bias); }))
      adjoin_bf16_copies(biases);
  }
  // Empty if the layers must be computed one by one.
  Tensors operator()(const Tensor& x) const { return has_all() ? linear_parts(x, weights, biases) : Tensors(); }
};

// Placeholder queries and keys for attention without content, stored as the values are. -> (B, H, N, 1)
Tensor zero_heads(const Tensor& x, int64_t heads) {
  return expand(Tensor::zeros({1, 1, 1, 1}, x.dtype(), x.device()), {x.size(0), heads, x.size(1), 1});
}

void check_tokens(const Tensor& x) { check(x.rank() == 3, "multi_head: x has shape ", x.shape(), ", expected (B, N, D)"); }

// The lengths equivalent to a mask of keys; an error if there are none. keep: (B, 1, 1, M) -> (B)
Tensor lengths_of(const Tensor& keep) {
  check(keep.rank() == 4 && keep.size(1) == 1 && keep.size(2) == 1, "multi_head: a mask of shape ", keep.shape(),
        " for linear attention, expected (B, 1, 1, M)");
  const int64_t B = keep.size(0), M = keep.size(3);
  const std::vector<uint8_t> visible = converted(keep, DType::u8).to_vector<uint8_t>();
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < B; ++b) {
    const auto row = visible.begin() + b * M;
    lengths.push_back(std::find(row, row + M, 0) - row);
    check(std::find(row + lengths.back(), row + M, 1) == row + M, "multi_head: linear attention supports lengths, not masks with gaps");
  }
  return Tensor::from(lengths, {B}, keep.device());
}

Tensor attend_linear(LinearAttentionOptions linear, const Heads& at, const AttentionOptions& options) {
  if (linear.projection.defined()) linear.projection = linear.projection.to(at.q.device());
  for (const Term& term : options.terms) {
    const auto* lengths = std::get_if<KeyLengths>(&term);
    const auto* mask = std::get_if<Mask>(&term);
    if (lengths) linear.lengths = lengths->lengths;
    if (mask) linear.lengths = lengths_of(mask->keep);
    if (std::get_if<Causal>(&term)) linear.causal = true;
    check(lengths || mask || std::get_if<Causal>(&term),
          "multi_head: linear attention supports the causal mask and lengths, no other terms");
  }
  const int64_t N = at.q.size(2), M = at.k.size(2);
  check(!linear.causal || N == M || N == 1, "multi_head: linear attention of ", N, " tokens to a cache of ", M, ", expected one at a time");
  linear.causal = linear.causal && N == M;  // the last token sees all keys
  return linear_attention(at.q, at.k, at.v, linear);
}

Tensor attend_by_kind(const AttentionKind& kind, const Heads& at, AttentionOptions options) {
  if (kind.kind == AttentionKind::Kind::hard) options.hard = Hard::straight_through;
  if (kind.kind == AttentionKind::Kind::linear) return attend_linear(kind.features, at, options);
  const bool plain = kind.kind == AttentionKind::Kind::soft || kind.kind == AttentionKind::Kind::hard;
  if (plain) return attention(at.q, at.k, at.v, options);
  check(options.terms.empty(), "multi_head: ", options.terms.size(), " terms for channel or pooled attention, expected none");
  if (kind.kind == AttentionKind::Kind::channel) return channel_attention(at.q, at.k, at.v);
  return attention(at.q, pooled_keys(at.k, kind.grid, kind.reduction), pooled_keys(at.v, kind.grid, kind.reduction), options);
}

// Every sequence attends to its own tokens. at: of (1, T) tokens -> (1, H, T, E)
Tensor attend_sequences(const MultiHeadAttention& layer, const Heads& at, const AttentionOptions& options, Mode mode,
                        const std::vector<SequenceTokens>& sequences) {
  std::vector<int64_t> begins{0};
  for (const SequenceTokens& each : sequences) begins.push_back(begins.back() + each.tokens);
  check(begins.back() == at.q.size(2) && at.q.size(0) == 1, "multi_head: sequences of ", begins.back(), " tokens in x of ", at.q.size(0),
        " x ", at.q.size(2), ", expected 1 x all of them");
  Tensors parts(sequences.size());
  const auto attend_one = [&](int64_t i) {
    const auto s = static_cast<size_t>(i);
    const auto own = [&](const Tensor& x) { return slice(x, 2, begins[s], begins[s + 1]); };
    KeyValueCache* cache = sequences[s].cache;
    AttentionOptions placed = options;
    placed.first_query = cache ? cache->length() : 0;
    if (cache) cache->append(own(at.k), own(at.v));
    parts[s] = layer.attend({own(at.q), cache ? cache->keys() : own(at.k), cache ? cache->values() : own(at.v)}, placed, mode);
  };
  if (at.q.device() == kCpu && sequences.size() > 1)
    parallel_tasks(std::ssize(sequences), attend_one);
  else
    for (int64_t i = 0; i < std::ssize(sequences); ++i) attend_one(i);
  return parts.size() == 1 ? parts[0] : concat(parts, 2);
}

// Several sequences whose rotary frequencies depend on their lengths.
Tensor one_by_one(const MultiHeadAttention& layer, const Tensor& x, const AttentionOptions& options, Mode mode,
                  const AttentionContext& context) {
  Tensors parts;
  int64_t begin = 0;
  for (const SequenceTokens& each : context.sequences) {
    const int64_t end = begin + each.tokens;
    parts.push_back(
        layer(slice(x, 1, begin, end), options, mode, {.positions = slice(context.positions, 1, begin, end), .sequences = {each}}));
    begin = end;
  }
  return concat(parts, 1);
}

}  // namespace

Tensor gather_tokens(const Tensor& x, const Tensor& rows) {
  const Tensor all = reshape(x, {x.size(0) * x.size(1), x.size(2)});
  return reshape(index_select(all, 0, reshape(rows, {rows.count()}).to(x.device())), {rows.size(0), rows.size(1), x.size(2)});
}

bool MultiHeadAttention::can_select_queries(const AttentionOptions& options) const {
  const auto masks_keys_only = [](const Term& term) {
    const auto* mask = std::get_if<Mask>(&term);
    return std::get_if<KeyLengths>(&term) || (mask && mask->keep.rank() == 4 && mask->keep.size(2) == 1);
  };
  return !qkv.defined() && !rotary && positions.empty() && kind.kind == AttentionKind::Kind::soft &&
         std::all_of(options.terms.begin(), options.terms.end(), masks_keys_only);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionOptions& options, Mode mode, const AttentionContext& context) const {
  if (context.query_rows.defined()) {
    check(!context.cache && can_select_queries(options), "multi_head: query_rows, but scores depend on the positions of queries");
    const auto [k, v] = keys_values(x);
    return join(attend({queries(gather_tokens(x, context.query_rows)), k, v}, options, mode));
  }
  if (!context.sequences.empty()) {
    check(!rotary || context.positions.defined(),
          "multi_head: several sequences with rotary positions, expected the positions of their tokens");
    if (rotary && rotary->long_texts && context.sequences.size() > 1) return one_by_one(*this, x, options, mode, context);
    const Heads at = project(x, context.positions.defined() ? Positions(context.positions) : Positions(0));
    return join(attend_sequences(*this, at, options, mode, context.sequences));
  }
  const int64_t before = context.cache ? context.cache->length() : 0;
  Heads at = project(x, context.positions.defined() ? Positions(context.positions) : Positions(before));
  if (!context.cache) return join(attend(at, options, mode));
  context.cache->append(at.k, at.v);
  AttentionOptions cached = options;
  cached.first_query = before;
  return join(attend({at.q, context.cache->keys(), context.cache->values()}, cached, mode));
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Tensor& memory, const AttentionOptions& options, Mode mode) const {
  const auto [k, v] = keys_values(memory);
  return join(attend({queries(x), k, v}, options, mode));
}

Heads MultiHeadAttention::project(const Tensor& x, const Positions& first) const {
  check_tokens(x);
  Tensors parts = JoinedProjection({&query, &key, &value})(x);
  if (qkv.defined()) {
    const int64_t D = qkv.outputs() / (heads + 2 * key_heads);
    parts = split(qkv(x), std::vector<int64_t>{heads * D, key_heads * D, key_heads * D}, 2);
  } else if (parts.empty()) {
    const auto [k, v] = keys_values(x, first);
    return {queries(x, first), k, v};
  }
  const Tensor q = split_heads(parts[0], heads), k = split_heads(parts[1], key_heads), v = split_heads(parts[2], key_heads);
  return rotary ? Heads{(*rotary)(q, first), (*rotary)(k, first), v} : Heads{q, k, v};
}

Tensor MultiHeadAttention::queries(const Tensor& x, const Positions& first) const {
  check_tokens(x);
  check(!qkv.defined(), "multi_head: a fused projection attends to its own tokens only, expected separate ones");
  if (!query.defined()) return zero_heads(x, heads);
  const Tensor q = split_heads(query(x), heads);
  return rotary ? (*rotary)(q, first) : q;
}

std::pair<Tensor, Tensor> MultiHeadAttention::keys_values(const Tensor& memory, const Positions& first) const {
  check_tokens(memory);
  check(!qkv.defined(), "multi_head: a fused projection attends to its own tokens only, expected separate ones");
  const Tensors parts = JoinedProjection({&key, &value})(memory);
  const Tensor v = split_heads(!parts.empty() ? parts[1] : value.defined() ? value(memory) : memory, key_heads);
  if (!key.defined()) return {zero_heads(memory, key_heads), v};
  const Tensor k = split_heads(parts.empty() ? key(memory) : parts[0], key_heads);
  return {rotary ? (*rotary)(k, first) : k, v};
}

Tensor MultiHeadAttention::attend(Heads at, const AttentionOptions& options, Mode mode) const {
  const ModuleScope module(name);
  const bool content = query.defined() || qkv.defined();
  AttentionOptions all = options;
  if (!all.beta.given()) all.beta = content ? beta : Beta(0.0f);
  if (mode.training() && dropout > 0) {
    all.dropout = dropout;
    all.rng = mode.rng;
  }
  std::vector<Term> own;
  for (const ScorePositions& position : positions) {
    if (const auto* term = std::get_if<Term>(&position)) own.push_back(*term);
    if (const auto* relative = std::get_if<RelativeContent>(&position)) {
      check(!all.beta.tensor.defined(), "multi_head: a learned beta with relative content, expected a number");
      check(all.first_query == 0, "multi_head: relative content from a cache, expected all tokens at once");
      const auto [queries_used, term] = (*relative)(at.q, at.k.size(2), all.beta.number_for(at.q.size(3)));
      at.q = queries_used;
      own.push_back(term);
    }
  }
  all.terms.insert(all.terms.begin(), own.begin(), own.end());
  return module.call({&at.q, &at.k, &at.v}, attend_by_kind(kind, at, all));
}

Tensor MultiHeadAttention::join(const Tensor& attended) const {
  const auto in_rows = [shape = Shape{attended.size(0), attended.size(2), attended.size(1) * attended.size(3)}](const Tensor& x) {
    return reshape(transpose(x, 1, 2), shape);
  };
  const Tensor rows = in_rows(attended);
  if (!has_recompute(attended)) return output(rows);
  return output(with_recompute(rows, [in_rows, kept = SavedInput(attended, attended)] { return in_rows(kept.get()); }));
}

MultiHeadAttention make_multi_head(const Scope& scope, const MultiHeadOptions& options) {
  const auto or_else = [](int64_t value, int64_t fallback) { return value == 0 ? fallback : value; };
  const int64_t width = options.width, H = options.heads;
  check(width >= 1 && H >= 1, "multi_head: width ", width, " and ", H, " heads, expected 1 or more");
  const bool projects = options.content || options.project_values;
  check(!projects || options.head_width != 0 || width % H == 0, "multi_head: width ", width, " does not divide into ", H, " heads");
  const int64_t G = or_else(options.key_heads, options.project_values ? H : 1), memory = or_else(options.memory_width, width);
  const int64_t D = or_else(options.head_width, width / H), E = options.project_values ? or_else(options.value_width, D) : memory;
  check(G >= 1 && H % G == 0, "multi_head: ", H, " heads do not share ", G, " key heads evenly");
  check(options.project_values || G == 1, "multi_head: ", G, " key heads without value projection, expected 1");

  MultiHeadAttention out{.heads = H, .key_heads = G, .dropout = options.dropout, .kind = options.kind, .rotary = options.rotary};
  const Initializer& weight = scope.initializer().weight;
  const MultiHeadNames& names = options.names;
  const bool transposed = options.stored_transposed;
  const LinearOptions part{.bias = options.bias, .stored_transposed = transposed};
  if (options.fused) {
    check(options.content && E == D && memory == width, "multi_head: fused projections of widths ", D, " and ", E, " from ", width, " and ",
          memory, ", expected equal ones");
    out.qkv =
        Linear(scope / names.qkv, width, (H + 2 * G) * D,
               {.bias = options.bias, .stored_transposed = transposed, .weight = initializer::in_parts({H * D, G * D, G * D}, weight)});
  } else if (scope.params().weights() != Weights::trainable && options.content && options.project_values && !options.cross && E == D &&
             memory == width) {
    out.qkv = pack_together({scope / names.query, scope / names.key, scope / names.value}, width, {H * D, G * D, G * D}, part);
  } else {
    if (options.content) {
      out.query =
          Linear(scope / names.query, width, H * D, {.bias = options.bias, .stored_transposed = transposed, .weight = options.query});
      out.key = Linear(scope / names.key, memory, G * D, part);
    }
    if (options.project_values) out.value = Linear(scope / names.value, memory, G * E, part);
    if (options.cross || memory != width)
      JoinedProjection({&out.key, &out.value}).adjoin();
    else
      JoinedProjection({&out.query, &out.key, &out.value}).adjoin();
  }
  out.output = Linear(scope / names.output, H * E, or_else(options.output_width, width),
                      {.bias = options.output_bias, .stored_transposed = transposed, .weight = scope.initializer().residual});
  if (options.positions) out.positions = options.positions(scope / names.positions);
  out.positions.insert(out.positions.end(), options.terms.begin(), options.terms.end());
  out.name = module_name(scope.path() + ".(attend)");
  return out;
}

}  // namespace heed
