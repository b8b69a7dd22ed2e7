// Multi-head attention (Vaswani et al. 2017), self and cross: project, attend in every head, join. Heads may be of any
// width, share keys in groups (Ainslie et al. 2023), or live by their score terms alone (Cordonnier et al. 2020).
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "heed/attention/cache.h"
#include "heed/attention/kernel_attention.h"
#include "heed/attention/pooled_keys.h"
#include "heed/nn/mode.h"
#include "heed/nn/positions.h"

namespace heed {

// How queries meet keys: docs/cheaper_attention.md. Kernel attention knows the causal mask and lengths alone; channel and
// pooled attention know no masks.
struct AttentionKind {
  enum Kind { soft, hard, kernel, channel, pooled } kind = soft;
  KernelOptions features = {};  // of the kernel
  TokenGrid grid = {};          // of pooled keys
  int64_t reduction = 1;
};

// What checkpoints call the parts.
struct MultiHeadNames {
  std::string_view query = "query", key = "key", value = "value", qkv = "qkv", output = "output", positions = "positions";
};

struct MultiHeadOptions {
  int64_t width = 0;         // of x
  int64_t heads = 1;         // H
  int64_t key_heads = 0;     // G, divides H; 0: H
  int64_t head_width = 0;    // D of queries and keys; 0: width / heads
  int64_t value_width = 0;   // E; 0: head_width
  int64_t memory_width = 0;  // of the tokens that keys and values are made of; 0: width
  int64_t output_width = 0;  // 0: width
  bool cross = false;        // keys and values are of other tokens than queries
  bool fused = false;        // one projection "qkv" in place of "query", "key", "value"
  bool bias = true;          // of queries, keys and values
  bool output_bias = true;
  float dropout = 0;           // of attention weights, in training
  bool content = true;         // false: neither queries nor keys, the terms alone speak
  bool project_values = true;  // false: the tokens themselves are the values of every head
  AttentionKind kind = {};
  bool stored_transposed = false;  // the weights in files, as GPT-2's
  MultiHeadNames names = {};
  std::optional<Rotary> rotary = {};
  // Makes the positions of a layer from its scope; they may be shared between layers by not using it.
  std::function<std::vector<ScorePositions>(const Scope&)> positions = {};
};

// Where the tokens of a call stand: at 0, 1, 2, ..., behind those of a cache, or anywhere.
struct Places {
  KeyValueCache* cache = nullptr;  // their keys and values are appended, and all of the cache's are attended to
  Tensor positions = {};           // (B, N) i64, for rotary positions
  Tensor wanted = {};              // (B, n) i64: only these tokens ask, all are keys; undefined: all ask. See MultiHeadAttention::picks
};

// The tokens at those places of every item. x: (B, N, D), places: (B, n) i64 -> (B, n, D)
Tensor tokens_at(const Tensor& x, const Tensor& places);

struct Heads {
  Tensor q;  // (B, H, N, D)
  Tensor k;  // (B, G, M, D)
  Tensor v;  // (B, G, M, E)
};

struct MultiHeadAttention {
  int64_t heads = 1, key_heads = 1;
  Linear query = {}, key = {}, value = {};  // (H D, I), (G D, I'), (G E, I'); query and key may be undefined together, value may
  Linear qkv = {};                          // ((H + 2 G) D, I): in place of those three
  Linear output = {};                       // (O, H E)
  Beta beta = {};                           // as in AttentionOptions
  float dropout = 0;                        // of attention weights, in training
  AttentionKind kind = {};
  std::optional<Rotary> rotary = {};
  std::vector<ScorePositions> positions = {};

  // Self-attention. x: (B, N, I) -> (B, N, O)
  Tensor operator()(const Tensor& x, const AttentionOptions& options = {}, Mode mode = {}, const Places& places = {}) const;
  // Cross-attention. x: (B, N, I), memory: (B, M, I') -> (B, N, O)
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionOptions& options = {}, Mode mode = {}) const;

  // Whether queries may be asked for by place: nothing in a score tells where its query stands.
  bool picks(const AttentionOptions& options) const;

  // The steps, for caches and for looking inside. Positions: as rotary ones take them.
  Heads project(const Tensor& x, const Positions& positions_of_x = 0) const;
  Tensor queries(const Tensor& x, const Positions& positions_of_x = 0) const;  // x: (B, N, I) -> (B, H, N, D)
  std::pair<Tensor, Tensor> keys_values(const Tensor& memory, const Positions& positions_of_memory = 0) const;  // memory: (B, M, I')
  Tensor attend(Heads at, const AttentionOptions& options = {}, Mode mode = {}) const;                          // -> (B, H, N, E)
  Tensor join(const Tensor& attended) const;                                                                    // (B, H, N, E) -> (B, N, O)
};

MultiHeadAttention make_multi_head(const Scope& scope, const MultiHeadOptions& options);

}  // namespace heed
