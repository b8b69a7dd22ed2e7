#include "heed/nn/pooling.h"

namespace heed {

Tensor pool_class(const Tensor& x) { return reshape(slice(x, 1, 0, 1), {x.size(0), x.size(2)}); }

Tensor pool_mean(const Tensor& x, const Tensor& lengths) {
  if (!lengths.defined()) return mean(x, {1});
  const int64_t B = x.size(0), N = x.size(1);
  check(lengths.rank() == 1 && lengths.size(0) == B, "pool_mean: lengths of shape ", lengths.shape(), ", expected (", B, ")");
  std::vector<float> weights(static_cast<size_t>(B * N), 0);
  const std::vector<int64_t> counts = lengths.to_vector<int64_t>();
  for (size_t b = 0; b < counts.size(); ++b) {
    check(counts[b] >= 1 && counts[b] <= N, "pool_mean: a length of ", counts[b], ", expected 1 to ", N);
    for (size_t i = 0; i < static_cast<size_t>(counts[b]); ++i) weights[b * static_cast<size_t>(N) + i] = 1 / static_cast<float>(counts[b]);
  }
  return reshape(matmul(Tensor::from(weights, {B, 1, N}, x.device()), x), {B, x.size(2)});
}

Tensor AttentionPooling::operator()(const Tensor& x, const AttentionOptions& options, Mode mode) const {
  const Tensor query = expand(probe, {x.size(0), 1, probe.size(2)});
  const Tensor y = attention(query, x, options, mode);
  return pool_class(y + feed_forward(norm(y), mode));
}

AttentionPooling make_attention_pooling(const Scope& scope, const MultiHeadOptions& attention, const FeedForwardOptions& feed_forward,
                                        float eps) {
  FeedForwardOptions block = feed_forward;
  block.width = attention.width;
  MultiHeadOptions cross = attention;  // the query is not a token, so the projections cannot be packed together
  cross.cross = true;
  // Xavier with fans 1 and D, as in the authors' code.
  const Initializer probe = [](const Shape& shape, Rng& rng) { return reshape(initializer::xavier_uniform()({1, shape[2]}, rng), shape); };
  return {.probe = scope.get("probe", {1, 1, attention.width}, probe, {.decays = false}),
          .attention = make_multi_head(scope / "attention", cross),
          .norm = Norm(scope / "norm", attention.width, eps),
          .feed_forward = make_feed_forward(scope / "feed_forward", block)};
}

Tensor Pool::operator()(const Tensor& x, Mode mode) const {
  check(x.rank() == 3, "pool: x has shape ", x.shape(), ", expected (B, N, D)");
  switch (kind) {
    case Pooling::class_token: return pool_class(x);
    case Pooling::mean: return pool_mean(x);
    case Pooling::attention: return attention(x, {}, mode);
    case Pooling::flatten: break;
  }
  return pool_flatten(x);
}

}  // namespace heed
