// From tokens to one vector: the class token (CLS), the mean (GAP), attention with one learned query (MAP), or concatenation.
#pragma once

#include "heed/core/api.h"
#include "heed/nn/feed_forward.h"
#include "heed/nn/multi_head.h"

namespace HEED_API heed {

Tensor pool_class(const Tensor& x);                             // (B, N, D) -> (B, D): the first token
Tensor pool_mean(const Tensor& x, const Tensor& lengths = {});  // (B, N, D), lengths: (B) i64 or undefined -> (B, D)
inline Tensor pool_flatten(const Tensor& x) { return reshape(x, {x.size(0), x.size(1) * x.size(2)}); }  // -> (B, N D)

// Multi-head attention pooling (Zhai et al. 2022): a learned query attends to the tokens; a feed-forward block follows.
struct AttentionPooling {
  Tensor probe;  // (1, 1, D)
  MultiHeadAttention attention = {};
  Norm norm = {};
  FeedForward feed_forward = {};

  Tensor operator()(const Tensor& x, const AttentionOptions& options = {}, Mode mode = {}) const;  // (B, N, D) -> (B, D)
};

// Names: probe, attention, norm, feed_forward.
AttentionPooling make_attention_pooling(const Scope& scope, const MultiHeadOptions& attention, const FeedForwardOptions& feed_forward,
                                        float eps = 1e-6f);

// The kinds of pooling above.
enum class Pooling { class_token, mean, attention, flatten };

// A pooling of any kind. attention: used if the kind is attention
struct Pool {
  Pooling kind = Pooling::class_token;
  AttentionPooling attention = {};

  Tensor operator()(const Tensor& x, Mode mode = {}) const;  // (B, N, D) -> (B, D); flatten: (B, N D)
};

}  // namespace heed
