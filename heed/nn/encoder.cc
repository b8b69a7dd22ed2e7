#include "heed/nn/encoder.h"

namespace heed {

Tensor EncoderLayer::operator()(const Tensor& x, const AttentionOptions& options, Mode mode, const AttentionContext& context) const {
  const Tensor residual = context.query_indices.defined() ? gather_tokens(x, context.query_indices) : x;
  if (place == NormPlace::after) {
    const Tensor y = attention_norm.add_norm(residual, branch(attention(x, options, mode, context), mode)).second;
    return feed_forward_norm.add_norm(y, branch(feed_forward(y, mode), mode)).second;
  }
  const auto [sum, y] = feed_forward_norm.add_norm(residual, branch(attention(attention_norm(x), options, mode, context), mode));
  return sum + branch(feed_forward(y, mode), mode);
}

EncoderLayer make_encoder_layer(const Scope& scope, const LayerOptions& options, const LayerNames& names) {
  FeedForwardOptions feed_forward = options.feed_forward;
  feed_forward.width = options.attention.width;
  const int64_t D = options.attention.width;
  return {.attention = make_multi_head(scope / names.attention, options.attention),
          .feed_forward = make_feed_forward(scope / names.feed_forward, feed_forward),
          .attention_norm = options.attention_norm ? Norm(scope / names.attention_norm, D, options.eps, options.norm) : Norm(),
          .feed_forward_norm = Norm(scope / names.feed_forward_norm, D, options.eps, options.norm),
          .place = options.place,
          .branch = options.branch};
}

LayerOptions options_of_layer(LayerOptions options, int64_t layer, int64_t layers) {
  options.branch.stochastic_depth = stochastic_depth_of(layer, layers, options.branch.stochastic_depth);
  return options;
}

}  // namespace heed
