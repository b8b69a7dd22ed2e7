#include "heed/nn/encoder.h"

#include <tuple>
#include <utility>

namespace heed {
namespace {

// x: (B, N, D), factors: (D) or undefined
Tensor scaled_branch(const Tensor& x, const Tensor& factors) { return factors.defined() ? x * cast(factors, x.dtype()) : x; }

}  // namespace

Tensor EncoderLayer::operator()(const Tensor& x, const AttentionOptions& options, Mode mode, const AttentionContext& context) const {
  return extend({x}, options, mode, context).total();
}

Residual EncoderLayer::extend(Residual x, const AttentionOptions& options, Mode mode, const AttentionContext& context) const {
  const auto chosen = [&](const Tensor& all) { return context.query_rows.defined() ? gather_tokens(all, context.query_rows) : all; };
  const auto attend = [&](const Tensor& y) { return branch(scaled_branch(attention(y, options, mode, context), attention_scale), mode); };
  const auto transform = [&](const Tensor& y) { return branch(scaled_branch(feed_forward(y, mode), feed_forward_scale), mode); };
  if (place == NormPlace::after) {
    const Tensor input = x.total();
    const Tensor y = attention_norm.add_norm(chosen(input), attend(input)).second;
    return {feed_forward_norm.add_norm(y, transform(y)).second};
  }
  Tensor input, attended;
  {
    Tensor y;
    if (x.branch.defined() && attention_norm.weight.defined()) {
      std::tie(input, y) = attention_norm.add_norm(x.sum, x.branch);
    } else {
      input = x.total();
      y = attention_norm(input);
    }
    x = {};  // its memory is free from here on
    attended = attend(y);
  }
  const auto [sum, y] = feed_forward_norm.add_norm(chosen(input), std::exchange(attended, {}));
  return {sum, transform(y)};
}

EncoderLayer make_encoder_layer(const Scope& scope, const LayerOptions& options, const LayerNames& names) {
  FeedForwardOptions feed_forward = options.feed_forward;
  feed_forward.width = options.attention.width;
  const int64_t D = options.attention.width;
  const auto factors = [&](std::string_view name) {
    return options.layer_scale ? scope.get(name, {D}, initializer::constant(*options.layer_scale), {.decays = false}) : Tensor();
  };
  return {.attention = make_multi_head(scope / names.attention, options.attention),
          .feed_forward = make_feed_forward(scope / names.feed_forward, feed_forward),
          .attention_norm = options.attention_norm ? Norm(scope / names.attention_norm, D, options.eps, options.norm) : Norm(),
          .feed_forward_norm = Norm(scope / names.feed_forward_norm, D, options.eps, options.norm),
          .place = options.place,
          .branch = options.branch,
          .attention_scale = factors(names.attention_scale),
          .feed_forward_scale = factors(names.feed_forward_scale)};
}

LayerOptions options_of_layer(LayerOptions options, int64_t layer, int64_t layers) {
  options.branch.stochastic_depth = stochastic_depth_of(layer, layers, options.branch.stochastic_depth);
  return options;
}

}  // namespace heed
