// Decoder layers (Vaswani et al. 2017): causal self-attention, cross-attention to an encoder's output, feed-forward.
#pragma once

#include <vector>

#include "heed/nn/encoder.h"

namespace heed {

// What the two attentions are told, for example the lengths of both sequences.
struct DecoderTerms {
  AttentionOptions self = {}, cross = {};
  bool causal = true;  // the causal mask is there already; false: the terms of self bring their own
};

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
  // The same with the memory's keys and values, which do not change from token to token, and those of earlier tokens.
  Tensor step(const Tensor& x, const std::pair<Tensor, Tensor>& memory, const DecoderTerms& terms = {}, Mode mode = {},
              const Places& places = {}) const;
};

struct Decoder {
  std::vector<DecoderLayer> layers = {};
  Norm norm = {};  // the end of a pre-norm stack

  Tensor operator()(Tensor x, const Tensor& memory, const DecoderTerms& terms = {}, Mode mode = {}) const;
};

inline constexpr LayerNames kDecoderNames{"self_attention",    "self_norm",       "feed_forward",
                                          "feed_forward_norm", "cross_attention", "cross_norm"};

// Positions in the scores, rotary ones and attention's memory_width are for one of the two attentions: the first two for
// self, the last for cross.
DecoderLayer make_decoder_layer(const Scope& scope, const LayerOptions& options, const LayerNames& names = kDecoderNames);
Decoder make_decoder(const Scope& scope, int64_t layers, const LayerOptions& options);  // names: layers.0, ...; norm

}  // namespace heed
