#include "heed/nn/multi_head.h"

#include <algorithm>

#include "heed/attention/channel_attention.h"

namespace heed {
namespace {

// (B, N, H D) -> (B, H, N, D)
Tensor split_heads(const Tensor& x, int64_t heads) {
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / std::max<int64_t>(heads, 1)}), 1, 2);
}

// Stands for queries and keys where there is no content. -> (B, H, N, 1)
Tensor nothing_said(const Tensor& x, int64_t heads) {
  return expand(Tensor::zeros({1, 1, 1, 1}, DType::f32, x.device()), {x.size(0), heads, x.size(1), 1});
}

void check_tokens(const Tensor& x) { check(x.rank() == 3, "multi_head: x has shape ", x.shape(), ", expected (B, N, D)"); }

// The lengths that a mask of keys stands for, or an error. keep: (B, 1, 1, M) -> (B)
Tensor lengths_of(const Tensor& keep) {
  check(keep.rank() == 4 && keep.size(1) == 1 && keep.size(2) == 1, "multi_head: a mask of shape ", keep.shape(),
        " for kernel attention, expected (B, 1, 1, M)");
  const int64_t B = keep.size(0), M = keep.size(3);
  const std::vector<uint8_t> seen = converted(keep, DType::u8).to_vector<uint8_t>();
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < B; ++b) {
    const auto row = seen.begin() + b * M;
    lengths.push_back(std::find(row, row + M, 0) - row);
    check(std::find(row + lengths.back(), row + M, 1) == row + M, "multi_head: kernel attention knows lengths, not masks with holes");
  }
  return Tensor::from(lengths, {B});
}

Tensor attend_as_kernel(KernelOptions kernel, const Heads& at, const AttentionOptions& options) {
  for (const Term& term : options.terms) {
    const auto* lengths = std::get_if<KeyLengths>(&term);
    const auto* mask = std::get_if<Mask>(&term);
    if (lengths) kernel.lengths = lengths->lengths;
    if (mask) kernel.lengths = lengths_of(mask->keep);
    if (std::get_if<Causal>(&term)) kernel.causal = true;
    check(lengths || mask || std::get_if<Causal>(&term), "multi_head: kernel attention knows the causal mask and lengths, no other terms");
  }
  const int64_t N = at.q.size(2), M = at.k.size(2);
  check(!kernel.causal || N == M || N == 1, "multi_head: kernel attention of ", N, " tokens to a cache of ", M, ", expected one at a time");
  kernel.causal = kernel.causal && N == M;  // the last token sees all
  return kernel_attention(at.q, at.k, at.v, kernel);
}

Tensor attend_as(const AttentionKind& kind, const Heads& at, AttentionOptions options) {
  if (kind.kind == AttentionKind::hard) options.hard = Hard::straight_through;
  if (kind.kind == AttentionKind::kernel) return attend_as_kernel(kind.features, at, options);
  const bool plain = kind.kind == AttentionKind::soft || kind.kind == AttentionKind::hard;
  if (plain) return attention(at.q, at.k, at.v, options);
  check(options.terms.empty(), "multi_head: ", options.terms.size(), " terms for channel or pooled attention, expected none");
  if (kind.kind == AttentionKind::channel) return channel_attention(at.q, at.k, at.v);
  return attention(at.q, pooled_keys(at.k, kind.grid, kind.reduction), pooled_keys(at.v, kind.grid, kind.reduction), options);
}

}  // namespace

Tensor tokens_at(const Tensor& x, const Tensor& places) {
  const int64_t B = x.size(0), N = x.size(1), n = places.size(1);
  std::vector<int64_t> rows = places.to_vector<int64_t>();
  for (int64_t i = 0; i < B * n; ++i) rows[static_cast<size_t>(i)] += i / n * N;
  return reshape(index_select(reshape(x, {B * N, x.size(2)}), 0, Tensor::from(rows, {B * n})), {B, n, x.size(2)});
}

bool MultiHeadAttention::picks(const AttentionOptions& options) const {
  const auto of_keys = [](const Term& term) {
    const auto* mask = std::get_if<Mask>(&term);
    return std::get_if<KeyLengths>(&term) || (mask && mask->keep.rank() == 4 && mask->keep.size(2) == 1);
  };
  return !qkv.defined() && !rotary && positions.empty() && kind.kind == AttentionKind::soft &&
         std::all_of(options.terms.begin(), options.terms.end(), of_keys);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionOptions& options, Mode mode, const Places& places) const {
  if (places.wanted.defined()) {
    check(!places.cache && picks(options), "multi_head: chosen queries, but scores depend on where they stand");
    const auto [k, v] = keys_values(x);
    return join(attend({queries(tokens_at(x, places.wanted)), k, v}, options, mode));
  }
  const int64_t before = places.cache ? places.cache->length() : 0;
  Heads at = project(x, places.positions.defined() ? Positions(places.positions) : Positions(before));
  if (!places.cache) return join(attend(at, options, mode));
  places.cache->append(at.k, at.v);
  AttentionOptions behind = options;
  behind.first_query = before;
  return join(attend({at.q, places.cache->keys(), places.cache->values()}, behind, mode));
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Tensor& memory, const AttentionOptions& options, Mode mode) const {
  const auto [k, v] = keys_values(memory);
  return join(attend({queries(x), k, v}, options, mode));
}

Heads MultiHeadAttention::project(const Tensor& x, const Positions& first) const {
  check_tokens(x);
  if (!qkv.defined()) {
    const auto [k, v] = keys_values(x, first);
    return {queries(x, first), k, v};
  }
  const int64_t D = qkv.outputs() / (heads + 2 * key_heads);
  const Tensors parts = split(qkv(x), std::vector<int64_t>{heads * D, key_heads * D, key_heads * D}, 2);
  const Tensor q = split_heads(parts[0], heads), k = split_heads(parts[1], key_heads), v = split_heads(parts[2], key_heads);
  return rotary ? Heads{(*rotary)(q, first), (*rotary)(k, first), v} : Heads{q, k, v};
}

Tensor MultiHeadAttention::queries(const Tensor& x, const Positions& first) const {
  check_tokens(x);
  check(!qkv.defined(), "multi_head: a fused projection attends to its own tokens only, expected separate ones");
  if (!query.defined()) return nothing_said(x, heads);
  const Tensor q = split_heads(query(x), heads);
  return rotary ? (*rotary)(q, first) : q;
}

std::pair<Tensor, Tensor> MultiHeadAttention::keys_values(const Tensor& memory, const Positions& first) const {
  check_tokens(memory);
  check(!qkv.defined(), "multi_head: a fused projection attends to its own tokens only, expected separate ones");
  const Tensor v = split_heads(value.defined() ? value(memory) : memory, key_heads);
  if (!key.defined()) return {nothing_said(memory, key_heads), v};
  const Tensor k = split_heads(key(memory), key_heads);
  return {rotary ? (*rotary)(k, first) : k, v};
}

Tensor MultiHeadAttention::attend(Heads at, const AttentionOptions& options, Mode mode) const {
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
      check(!all.beta.tensor.defined(), "multi_head: a learned beta beside relative content, expected a number");
      check(all.first_query == 0, "multi_head: relative content from a cache, expected all tokens at once");
      const auto [queries_used, term] = (*relative)(at.q, at.k.size(2), all.beta.number_for(at.q.size(3)));
      at.q = queries_used;
      own.emplace_back(term);
    }
  }
  all.terms.insert(all.terms.begin(), own.begin(), own.end());
  return attend_as(kind, at, all);
}

Tensor MultiHeadAttention::join(const Tensor& attended) const {
  const Tensor rows = transpose(attended, 1, 2);  // (B, N, H, E)
  return output(reshape(rows, {rows.size(0), rows.size(1), rows.size(2) * rows.size(3)}));
}

MultiHeadAttention make_multi_head(const Scope& scope, const MultiHeadOptions& options) {
  const auto or_else = [](int64_t given, int64_t otherwise) { return given == 0 ? otherwise : given; };
  const int64_t width = options.width, H = options.heads;
  check(width >= 1 && H >= 1, "multi_head: width ", width, " and ", H, " heads, expected 1 or more");
  const bool projects = options.content || options.project_values;
  check(!projects || options.head_width != 0 || width % H == 0, "multi_head: width ", width, " does not divide into ", H, " heads");
  const int64_t G = or_else(options.key_heads, options.project_values ? H : 1), memory = or_else(options.memory_width, width);
  const int64_t D = or_else(options.head_width, width / H), E = options.project_values ? or_else(options.value_width, D) : memory;
  check(G >= 1 && H % G == 0, "multi_head: ", H, " heads do not share ", G, " key heads evenly");
  check(options.project_values || G == 1, "multi_head: ", G, " key heads of tokens that are not projected, expected 1");

  MultiHeadAttention made{.heads = H, .key_heads = G, .dropout = options.dropout, .kind = options.kind, .rotary = options.rotary};
  const Initialiser& weight = scope.initial().weight;
  const MultiHeadNames& names = options.names;
  const bool transposed = options.stored_transposed;
  const LinearOptions part{.bias = options.bias, .stored_transposed = transposed};
  if (options.fused) {
    check(options.content && E == D && memory == width, "multi_head: fused projections of widths ", D, " and ", E, " from ", width, " and ",
          memory, ", expected equal ones");
    made.qkv = Linear(scope / names.qkv, width, (H + 2 * G) * D,
                      {.bias = options.bias, .stored_transposed = transposed, .weight = initial::in_parts({H * D, G * D, G * D}, weight)});
  } else if (scope.params().weights() != Weights::trainable && options.content && options.project_values && !options.cross && E == D &&
             memory == width) {
    made.qkv = packed_together({scope / names.query, scope / names.key, scope / names.value}, width, {H * D, G * D, G * D}, part);
  } else {
    if (options.content) {
      made.query = Linear(scope / names.query, width, H * D, part);
      made.key = Linear(scope / names.key, memory, G * D, part);
    }
    if (options.project_values) made.value = Linear(scope / names.value, memory, G * E, part);
  }
  made.output = Linear(scope / names.output, H * E, or_else(options.output_width, width),
                       {.bias = options.output_bias, .stored_transposed = transposed, .weight = scope.initial().residual});
  if (options.positions) made.positions = options.positions(scope / names.positions);
  return made;
}

}  // namespace heed
