// Multi-head attention (Vaswani et al. 2017), self and cross: project, attend in every head, join. Heads may have any width,
// share keys in groups (GQA, Ainslie et al. 2023), or use score terms only, without QK^T (Cordonnier et al. 2020).
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "heed/attention/cache.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/pooled_keys.h"
#include "heed/core/api.h"
#include "heed/nn/mode.h"
#include "heed/nn/positions.h"

namespace HEED_API heed {

// Kinds of attention: docs/cheaper_attention.md. Linear attention supports the causal mask and lengths only; channel and
// pooled attention support no masks.
struct AttentionKind {
  enum class Kind { soft, hard, linear, channel, pooled };
  Kind kind = Kind::soft;
  LinearAttentionOptions features = {};  // of linear attention
  TokenGrid grid = {};                   // of pooled attention
  int64_t reduction = 1;                 // of pooled attention
};

// Parameter names.
struct MultiHeadNames {
  std::string_view query = "query", key = "key", value = "value", qkv = "qkv", output = "output", positions = "positions";
};

// Options of multi-head attention.
struct MultiHeadOptions {
  int64_t width = 0;         // of x
  int64_t heads = 1;         // H
  int64_t key_heads = 0;     // G, divides H; 0: H
  int64_t head_width = 0;    // D of queries and keys; 0: width / heads
  int64_t value_width = 0;   // E; 0: head_width
  int64_t memory_width = 0;  // input width of keys and values; 0: width
  int64_t output_width = 0;  // 0: width
  bool cross = false;        // keys and values come from other tokens than queries
  bool fused = false;        // one projection "qkv" instead of "query", "key", "value"
  bool bias = true;          // of queries, keys and values
  bool output_bias = true;
  float dropout = 0;           // of attention weights, in training
  bool content = true;         // false: no queries and keys; scores come from the terms only
  bool project_values = true;  // false: the values of every head are the tokens themselves
  AttentionKind kind = {};
  bool stored_transposed = false;  // files store weights as (I, O), as GPT-2 does
  Initializer query = {};          // default: that of all linear layers
  MultiHeadNames names = {};
  std::optional<Rotary> rotary = {};
  std::vector<Term> terms = {};  // of the scores of this layer, for example a window
  // Creates the score positions of a layer in its scope. A function that ignores the scope shares them between layers.
  std::function<std::vector<ScorePositions>(const Scope&)> positions = {};
};

// A sequence among others, for AttentionContext::sequences.
struct SequenceTokens {
  int64_t tokens = 0;
  KeyValueCache* cache = nullptr;  // as AttentionContext::cache
};

// Optional inputs of a self-attention call.
struct AttentionContext {
  KeyValueCache* cache = nullptr;  // new keys and values are appended; queries attend to all of the cache
  Tensor positions = {};           // (B, N) i64, for rotary positions; undefined: consecutive after the cache
  Tensor query_rows = {};          // (B, n) i64: tokens that have a query, as rows of (B N); undefined: all. See can_select_queries
  // Not empty: x is (1, T, I), the tokens of several sequences one after the other, and each attends to its own only. Its result has the
  // same bits whatever the others are, if the linear layers are packed. Rotary layers need `positions`.
  std::vector<SequenceTokens> sequences = {};
};

// Gathers tokens of every item. x: (B, N, D), rows: (B, n) i64, token i of item b is row b N + i -> (B, n, D)
Tensor gather_tokens(const Tensor& x, const Tensor& rows);

// Queries, keys and values of all heads.
struct Heads {
  Tensor q;  // (B, H, N, D)
  Tensor k;  // (B, G, M, D)
  Tensor v;  // (B, G, M, E)
};

// A multi-head attention; make_multi_head() builds it. Options of a call are added to its own.
struct MultiHeadAttention {
  int64_t heads = 1, key_heads = 1;
  Linear query = {}, key = {}, value = {};  // (H D, I), (G D, I'), (G E, I'); without content or value projection: undefined
  Linear qkv = {};                          // ((H + 2 G) D, I), replaces the three
  Linear output = {};                       // (O, H E)
  Beta beta = {};                           // as in AttentionOptions
  float dropout = 0;                        // of attention weights, in training
  AttentionKind kind = {};
  std::optional<Rotary> rotary = {};
  std::vector<ScorePositions> positions = {};
  ModuleName name = {};  // of attend()

  // Self-attention. x: (B, N, I) -> (B, N, O)
  Tensor operator()(const Tensor& x, const AttentionOptions& options = {}, Mode mode = {}, const AttentionContext& context = {}) const;
  // Cross-attention. x: (B, N, I), memory: (B, M, I') -> (B, N, O)
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionOptions& options = {}, Mode mode = {}) const;

  // Whether AttentionContext::query_rows may be used: no score depends on the position of its query.
  bool can_select_queries(const AttentionOptions& options) const;

  // The single steps, for caches and inspection. Positions are those of rotary embeddings.
  Heads project(const Tensor& x, const Positions& positions_of_x = 0) const;
  Tensor queries(const Tensor& x, const Positions& positions_of_x = 0) const;  // x: (B, N, I) -> (B, H, N, D)
  std::pair<Tensor, Tensor> keys_values(const Tensor& memory, const Positions& positions_of_memory = 0) const;  // memory: (B, M, I')
  Tensor attend(Heads at, const AttentionOptions& options = {}, Mode mode = {}) const;                          // -> (B, H, N, E)
  Tensor join(const Tensor& attended) const;                                                                    // (B, H, N, E) -> (B, N, O)
};

// Its parameters come from the scope.
MultiHeadAttention make_multi_head(const Scope& scope, const MultiHeadOptions& options);

}  // namespace heed
