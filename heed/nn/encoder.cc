#include "heed/nn/encoder.h"

namespace heed {

Tensor EncoderLayer::operator()(const Tensor& x, const AttentionOptions& options, Mode mode, const Places& places) const {
  const Tensor own = places.wanted.defined() ? tokens_at(x, places.wanted) : x;
  if (place == NormPlace::after) {
    const Tensor y = attention_norm.added(own, branch(attention(x, options, mode, places), mode)).second;
    return feed_forward_norm.added(y, branch(feed_forward(y, mode), mode)).second;
  }
  const auto [sum, y] = feed_forward_norm.added(own, branch(attention(attention_norm(x), options, mode, places), mode));
  return sum + branch(feed_forward(y, mode), mode);
}

Tensor Encoder::operator()(Tensor x, const AttentionOptions& options, Mode mode) const {
  for (const EncoderLayer& layer : layers) x = layer(x, options, mode);
  return norm.weight.defined() ? norm(x) : x;
}

EncoderLayer make_encoder_layer(const Scope& scope, const LayerOptions& options, const LayerNames& names) {
  FeedForwardOptions feed_forward = options.feed_forward;
  feed_forward.width = options.attention.width;
  const int64_t D = options.attention.width;
  return {.attention = make_multi_head(scope / names.attention, options.attention),
          .feed_forward = make_feed_forward(scope / names.feed_forward, feed_forward),
          .attention_norm = Norm(scope / names.attention_norm, D, options.eps, options.norm),
          .feed_forward_norm = Norm(scope / names.feed_forward_norm, D, options.eps, options.norm),
          .place = options.place,
          .branch = options.branch};
}

Encoder make_encoder(const Scope& scope, int64_t layers, const LayerOptions& options) {
  Encoder made;
  for (int64_t layer = 0; layer < layers; ++layer)
    made.layers.push_back(make_encoder_layer(scope / "layers" / layer, options_of_layer(options, layer, layers)));
  if (options.place == NormPlace::before) made.norm = Norm(scope / "norm", options.attention.width, options.eps, options.norm);
  return made;
}

LayerOptions options_of_layer(LayerOptions options, int64_t layer, int64_t layers) {
  options.branch.stochastic_depth = stochastic_depth_of(layer, layers, options.branch.stochastic_depth);
  return options;
}

}  // namespace heed
