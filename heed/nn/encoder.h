// Encoder layers: attention and feed-forward, each on a residual branch with a norm, after the addition (post-norm: Vaswani et
// al. 2017, BERT) or before the branch (pre-norm: ViT, GPT). With Causal{} in its terms an encoder is a decoder-only model.
#pragma once

#include <optional>

#include "heed/core/api.h"
#include "heed/nn/feed_forward.h"
#include "heed/nn/mode.h"
#include "heed/nn/multi_head.h"

namespace HEED_API heed {

// The norm of a residual branch: before it, or after the addition.
enum class NormPlace { before, after };

// Regularization of a residual branch in training: dropout, then stochastic depth.
struct Branch {
  float dropout = 0, stochastic_depth = 0;

  Tensor operator()(const Tensor& branch, Mode mode) const {  // (B, N, D) -> (B, N, D)
    return heed::stochastic_depth(heed::dropout(branch, dropout, mode), stochastic_depth, mode);
  }
};

// Of encoder and decoder layers.
struct LayerOptions {
  MultiHeadOptions attention = {};
  FeedForwardOptions feed_forward = {};  // .width is ignored: attention.width is used
  NormPlace place = NormPlace::after;
  NormKind norm = NormKind::layer;
  bool attention_norm = true;  // false: pre-norm attention gets its input as it is, as in ModernBERT's first layer
  float eps = 1e-5f;
  Branch branch = {};
  std::optional<float> layer_scale = {};  // encoders: initial value of learned factors of a branch's features (Touvron et al. 2021)
};

// x = sum + branch, (B, N, D) each, before the addition: the norm that follows adds them on its way. branch may be undefined: x = sum.
struct Residual {
  Tensor sum, branch = {};

  Tensor total() const { return branch.defined() ? sum + branch : sum; }  // (B, N, D)
};

// One layer; make_encoder_layer() builds it.
struct EncoderLayer {
  MultiHeadAttention attention = {};
  FeedForward feed_forward = {};
  Norm attention_norm = {}, feed_forward_norm = {};
  NormPlace place = NormPlace::after;
  Branch branch = {};
  Tensor attention_scale = {}, feed_forward_scale = {};  // (D): factors of the branches; undefined: 1

  // (B, N, D) -> (B, N, D), or (B, n, D) with context.query_rows (B, n)
  Tensor operator()(const Tensor& x, const AttentionOptions& options = {}, Mode mode = {}, const AttentionContext& context = {}) const;
  // The same between two layers: with pre-norm, the first norm of the next layer computes the last addition of this one.
  Residual extend(Residual x, const AttentionOptions& options, Mode mode, const AttentionContext& context) const;
};

// Parameter names of the parts of a layer; an empty name is the layer's own scope.
struct LayerNames {
  std::string_view attention, attention_norm, feed_forward, feed_forward_norm, cross_attention = {}, cross_norm = {};
  std::string_view attention_scale = {}, feed_forward_scale = {};  // factors of the branches
};
// The usual names.
inline constexpr LayerNames kEncoderNames{"attention", "attention_norm", "feed_forward", "feed_forward_norm"};

// Its parameters come from the scope.
EncoderLayer make_encoder_layer(const Scope& scope, const LayerOptions& options, const LayerNames& names = kEncoderNames);
// The options of layer `layer` of `layers`: stochastic depth grows linearly over the layers up to the value in `options`.
LayerOptions options_of_layer(LayerOptions options, int64_t layer, int64_t layers);

}  // namespace heed
