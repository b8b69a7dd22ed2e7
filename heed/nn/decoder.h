// Decoder layers (Vaswani et al. 2017): causal self-attention, cross-attention to an encoder's output, feed-forward.
#pragma once

#include "heed/core/api.h"
#include "heed/nn/encoder.h"

namespace HEED_API heed {

// Options of the two attentions of a call, for example the lengths of both sequences.
struct DecoderTerms {
  AttentionOptions self = {}, cross = {};
  bool causal = true;  // adds the causal mask to self; false: the terms of self contain it
};

// One layer; make_decoder_layer() builds it. Each of its three parts is on a residual branch with a norm.
struct DecoderLayer {
  MultiHeadAttention self_attention = {}, cross_attention = {};
  FeedForward feed_forward = {};
  Norm self_norm = {}, cross_norm = {}, feed_forward_norm = {};
  NormPlace place = NormPlace::after;
  Branch branch = {};

  // x: (B, N, D), memory: (B, M, D') -> (B, N, D)
  Tensor operator()(const Tensor& x, const Tensor& memory, const DecoderTerms& terms = {}, Mode mode = {}) const {
    return step(x, cross_attention.keys_values(memory), terms, mode);
  }
  // One decoding step. memory: keys and values of the encoder's output, projected once; context: the cache of earlier tokens
  Tensor step(const Tensor& x, const std::pair<Tensor, Tensor>& memory, const DecoderTerms& terms = {}, Mode mode = {},
              const AttentionContext& context = {}) const;
};

// The usual names.
inline constexpr LayerNames kDecoderNames{"self_attention",    "self_norm",       "feed_forward",
                                          "feed_forward_norm", "cross_attention", "cross_norm"};

// Score positions and rotary positions apply to self-attention only, attention.memory_width to cross-attention only.
DecoderLayer make_decoder_layer(const Scope& scope, const LayerOptions& options, const LayerNames& names = kDecoderNames);

}  // namespace heed
