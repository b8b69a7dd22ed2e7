// L14: with tokens in columns, Q K^T is a map between channels; the map between tokens is Q^T K.
#include <algorithm>

#include "heed/attention/channel_attention.h"
#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/multi_head.h"

namespace heed::lab {
namespace {

struct MapOptions {
  int64_t width = 768, tokens = 6;
  uint64_t seed = 1;
};

void declare_maps(Settings& settings, MapOptions& options, Size) {
  settings.add("width", options.width, "rows of X: channels", {.least = 2, .most = 2048});
  settings.add("tokens", options.tokens, "columns of X", {.least = 2, .most = 512});
  settings.add("seed", options.seed, "of tokens and weights");
}

// The matrices in the layout of the claim: channels down, tokens across.
struct ColumnTokens {
  Tensor q, k, v;  // (D, N)
  Heads rows;      // in heed's layout: (1, 1, N, D)

  ColumnTokens(int64_t D, const Tensor& x, uint64_t seed) {  // x: (D, N)
    Params params(seed);
    Initializers initializers = initializer::vit();
    initializers.weight = initializer::lecun_normal();
    const MultiHeadAttention layer = make_multi_head(Scope(params, initializers), {.width = D});
    const Heads projected = layer.project(reshape(transpose(x, 0, 1), {1, x.size(1), D}));
    rows = {projected.q.detach(), projected.k.detach(), projected.v.detach()};
    const auto columns = [&](const Tensor& y) { return transpose(reshape(y, {y.size(2), y.size(3)}), 0, 1); };
    q = columns(rows.q), k = columns(rows.k), v = columns(rows.v);
  }
  Tensor between_tokens(float beta) const { return softmax(matmul(transpose(q, 0, 1), k) * beta); }    // (N, N)
  Tensor between_channels(float beta) const { return softmax(matmul(q, transpose(k, 0, 1)) * beta); }  // (D, D)
  Tensor as_columns(const Tensor& y) const { return transpose(reshape(y, {y.size(2), y.size(3)}), 0, 1); }
};

Tensor columns_in_order(const Tensor& x, const std::vector<int64_t>& order) {
  return index_select(x, 1, Tensor::from(order, {std::ssize(order)}, kCpu));
}

// The upper left corner of a map between channels, which is too large to draw.
HeatMap corner_of(const Tensor& matrix, int64_t most) {
  const int64_t side = std::min(most, matrix.size(0));
  return heat_map(slice(slice(matrix, 0, 0, side), 1, 0, side), "channel of Q", "channel of K");
}

Report run_maps(const MapOptions& options, const ProgressCallback&) {
  const int64_t D = options.width, N = options.tokens;
  Rng rng(options.seed);
  const Tensor x = random_normal({D, N}, 0, 1, rng, kCpu);
  const ColumnTokens at(D, x, options.seed);
  const float beta = Beta().number_for(D);
  const Tensor token_map = attention_probabilities(at.rows.q, at.rows.k, {.beta = beta});  // (1, 1, N, N)
  const Tensor channel_map = at.between_channels(beta);                                    // (D, D)

  const std::vector<int64_t> order = random_permutation(N, rng);
  const ColumnTokens moved(D, columns_in_order(x, order), options.seed);
  const ColumnTokens longer(D, concat({x, random_normal({D, 1}, 0, 1, rng, kCpu)}, 1), options.seed);
  const Tensor moved_map = at.between_tokens(beta);
  const Tensor expected = index_select(columns_in_order(moved_map, order), 0, Tensor::from(order, {N}, kCpu));
  const auto n = static_cast<double>(N), d = static_cast<double>(D);

  Report report;
  report.statement = "The map between tokens is $Q^T K$ of shape (N, N), here " + std::to_string(N) + " x " + std::to_string(N) +
                     ". $Q K^T$ of shape (D, D) is the map of channel attention: it sums over tokens, so it does not change with their "
                     "order and does not grow with their number.";
  report.measured = {
      equal_to("entries of heed's map between tokens (N²)", n * n, static_cast<double>(token_map.count())),
      at_most("softmax(Qᵀ K): distance from heed's map between tokens", 1e-5,
              largest_difference(at.between_tokens(beta), reshape(token_map, {N, N}))),
      at_most("V softmax(Qᵀ K)ᵀ: distance from heed's attention", 1e-4,
              largest_difference(matmul(at.v, transpose(at.between_tokens(beta), 0, 1)),
                                 at.as_columns(attention(at.rows.q, at.rows.k, at.rows.v, {.beta = beta})))),
      equal_to("entries of softmax(Q Kᵀ) (D²)", d * d, static_cast<double>(channel_map.count())),
      at_most(
          "softmax(Q Kᵀ) V: distance from heed's channel attention", 1e-4,
          largest_difference(matmul(channel_map, at.v), at.as_columns(channel_attention(at.rows.q, at.rows.k, at.rows.v, {.beta = beta})))),
      at_most("permuted tokens: change of the map between channels", 1e-5, largest_difference(moved.between_channels(beta), channel_map)),
      at_most("permuted tokens: distance of the map between tokens from the permuted map", 1e-5,
              largest_difference(moved.between_tokens(beta), expected)),
      equal_to("one more token: entries of the map between tokens", (n + 1) * (n + 1),
               static_cast<double>(longer.between_tokens(beta).count())),
      equal_to("one more token: entries of the map between channels", d * d, static_cast<double>(longer.between_channels(beta).count())),
  };
  if (N == D)
    report.agrees = "With as many tokens as channels both maps have the same shape, and the published one is right.";
  else
    report.measured.push_back(contradicts("entries of the map between tokens", d * d, static_cast<double>(token_map.count())));
  report.tables.push_back(
      {.title = "The two maps",
       .columns = {"", "shape", "entries", "multiply-adds of map and output", "sums over"},
       .rows = {{"Qᵀ K: attention", std::to_string(N) + " x " + std::to_string(N), n * n, 2 * n * n * d, "channels"},
                {"Q Kᵀ: channel attention", std::to_string(D) + " x " + std::to_string(D), d * d, 2 * d * d * n, "tokens"}}});
  HeatMap tokens = heat_map(reshape(token_map, {N, N}), "query token", "key token");
  tokens.least = 0;
  const std::string corner = D > 48 ? "D softmax(Q Kᵀ): 48 of " + std::to_string(D) + " channels" : "D softmax(Q Kᵀ): channels";
  report.figures.push_back(
      figure("The two maps of the same matrices",
             "Left: between tokens. Right: between channels, times D. With few tokens to sum over all weights are close to 1 / D.",
             {Plot{"softmax(Qᵀ K): tokens", std::move(tokens)}, Plot{corner, corner_of(channel_map * static_cast<float>(D), 48)}}));
  Figure film{.title = "As tokens are added",
              .caption = "24 channels. The map between tokens grows; the one between channels keeps its size and only gets sharper.",
              .parameter = "tokens"};
  const Tensor many = random_normal({24, 24}, 0, 1, rng, kCpu);
  for (const int64_t count : {2, 4, 6, 8, 12, 16, 20, 24}) {
    const ColumnTokens some(24, slice(many, 1, 0, count), options.seed);
    const float small_beta = Beta().number_for(24);
    const std::vector<double> small = values_of(some.between_tokens(small_beta));
    HeatMap right = corner_of(some.between_channels(small_beta), 24);
    // Missing cells stay dark, so that the growth is visible.
    HeatMap grown{.rows = 24,
                  .columns = 24,
                  .values = std::vector<double>(24 * 24),
                  .down = "query token",
                  .across = "key token",
                  .least = 0,
                  .most = 1};
    for (int64_t i = 0; i < count * count; ++i)
      grown.values[static_cast<size_t>(i / count * 24 + i % count)] = small[static_cast<size_t>(i)];
    right.least = 0, right.most = 1;
    film.frames.push_back({std::to_string(count), {Plot{"tokens", std::move(grown)}, Plot{"channels", std::move(right)}}});
  }
  report.figures.push_back(std::move(film));
  return report;
}

}  // namespace

Experiment token_or_channel_map() {
  return {
      .number = "L14",
      .name = "token-or-channel-map",
      .topic = Topic::expression,
      .title = "A map between tokens or between channels",
      .claim =
          "For $X$ of shape (768, 6) with tokens in columns the attention map is 6 x 6; $Q K^T$ is 768 x 768 and is channel attention.",
      .formula =
          R"(Q, K, V \in \mathbb{R}^{D \times N}: \quad \softmax(\beta Q^T K) \in \mathbb{R}^{N \times N}, \quad \softmax(\beta Q K^T) \in \mathbb{R}^{D \times D})",
      .published = "The attention map of $X$, $\\softmax(Q K^T)$, is of shape 768 x 768.",
      .setup =
          "Queries, keys and values of a random matrix $X$ with tokens in columns are multiplied in both orders. The results are compared "
          "with heed's attention and channel attention; then tokens are permuted, and one is added.",
      .expected = Verdict::corrected,
      .prepare = prepared(declare_maps, run_maps)};
}

}  // namespace heed::lab
