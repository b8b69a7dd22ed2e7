#include "heed/nn/decoder.h"

namespace heed {

Tensor DecoderLayer::step(const Tensor& x, const std::pair<Tensor, Tensor>& memory, const DecoderTerms& terms, Mode mode,
                          const AttentionContext& context) const {
  AttentionOptions causal = terms.self;
  if (terms.causal) causal.terms.insert(causal.terms.begin(), Causal{});
  const auto cross = [&](const Tensor& y) {
    return cross_attention.join(cross_attention.attend({cross_attention.queries(y), memory.first, memory.second}, terms.cross, mode));
  };
  if (place == NormPlace::after) {
    const Tensor y = self_norm.add_norm(x, branch(self_attention(x, causal, mode, context), mode)).second;
    const Tensor z = cross_norm.add_norm(y, branch(cross(y), mode)).second;
    return feed_forward_norm.add_norm(z, branch(feed_forward(z, mode), mode)).second;
  }
  const auto [sum, y] = cross_norm.add_norm(x, branch(self_attention(self_norm(x), causal, mode, context), mode));
  const auto [total, z] = feed_forward_norm.add_norm(sum, branch(cross(y), mode));
  return total + branch(feed_forward(z, mode), mode);
}

DecoderLayer make_decoder_layer(const Scope& scope, const LayerOptions& options, const LayerNames& names) {
  MultiHeadOptions self = options.attention, cross = options.attention;
  FeedForwardOptions feed_forward = options.feed_forward;
  self.memory_width = 0;
  cross.fused = false;
  cross.cross = true;
  cross.rotary.reset();
  cross.positions = {};
  cross.terms.clear();
  cross.kind = {};
  cross.content = cross.project_values = true;
  feed_forward.width = self.width;
  const auto norm = [&](std::string_view name) { return Norm(scope / name, self.width, options.eps, options.norm); };
  return {.self_attention = make_multi_head(scope / names.attention, self),
          .cross_attention = make_multi_head(scope / names.cross_attention, cross),
          .feed_forward = make_feed_forward(scope / names.feed_forward, feed_forward),
          .self_norm = norm(names.attention_norm),
          .cross_norm = norm(names.cross_norm),
          .feed_forward_norm = norm(names.feed_forward_norm),
          .place = options.place,
          .branch = options.branch};
}

}  // namespace heed
