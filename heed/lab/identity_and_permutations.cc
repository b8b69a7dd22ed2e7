// L4: self-attention that returns its tokens, or the same tokens in any order.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/multi_head.h"

namespace heed::lab {
namespace {

constexpr float kLimitBeta = 100;  // the remainder, N e^-100, is far below rounding

using Permutation = std::vector<int64_t>;  // token i takes the value of token [i]

struct PermutationOptions {
  int64_t tokens = 16, width = 8, permutations = 50;
  float beta = 8;
  uint64_t seed = 1;
};

void declare_permutations(Settings& settings, PermutationOptions& options, Size size) {
  if (size == Size::full) options.permutations = 1000;
  settings.add("tokens", options.tokens, "number of tokens", {.least = 3, .most = 256});
  settings.add("width", options.width, "of the content of tokens, in addition to their position codes", {.least = 1, .most = 512});
  settings.add("permutations", options.permutations, "random ones to test, in addition to all of 5 tokens", {.least = 1, .most = 100000});
  settings.add("beta", options.beta, "inverse temperature of the measured remainder", {.least = 0, .most = 10000});
  settings.add("seed", options.seed, "of tokens and permutations");
}

// DCT basis: N orthonormal position codes. -> (N, N)
Tensor orthonormal_codes(int64_t N) {
  std::vector<float> values;
  for (int64_t i = 0; i < N; ++i)
    for (int64_t f = 0; f < N; ++f)
      values.push_back(static_cast<float>(
          std::sqrt((f == 0 ? 1.0 : 2.0) / static_cast<double>(N)) *
          std::cos(std::numbers::pi * (static_cast<double>(i) + 0.5) * static_cast<double>(f) / static_cast<double>(N))));
  return Tensor::from(values, {N, N}, kCpu);
}

Tensor identity_matrix(int64_t N) {
  std::vector<float> values(static_cast<size_t>(N * N));
  for (int64_t i = 0; i < N; ++i) values[static_cast<size_t>(i * N + i)] = 1;
  return Tensor::from(values, {N, N}, kCpu);
}

struct PermutingLayer {
  Tensor x;      // (N, D): content
  Tensor codes;  // (N, N): position codes
  MultiHeadAttention layer = {};

  PermutingLayer(Tensor tokens, const Permutation& to) : x(std::move(tokens)), codes(orthonormal_codes(x.size(0))) {
    const int64_t N = x.size(0), D = x.size(1);
    // Queries map the code of position i to that of position to[i]; keys and values select code and content.
    const Tensor query_weight = matmul(transpose(index_select(codes, 0, Tensor::from(to, {N}, kCpu)), 0, 1), codes);
    layer.query.weight = concat({Tensor::zeros({N, D}, kCpu), query_weight}, 1);
    layer.key.weight = concat({Tensor::zeros({N, D}, kCpu), identity_matrix(N)}, 1);
    layer.value.weight = concat({identity_matrix(D), Tensor::zeros({D, N}, kCpu)}, 1);
    layer.output.weight = identity_matrix(D);
  }

  Tensor tokens() const { return reshape(concat({x, codes}, 1), {1, x.size(0), x.size(0) + x.size(1)}); }
  Tensor out(float beta) const { return reshape(layer(tokens(), {.beta = beta}), x.shape()); }
  Tensor hard() const { return reshape(layer(tokens(), {.hard = Hard::no_gradient}), x.shape()); }
  Tensor map(float beta) const {  // (N, N)
    const Heads at = layer.project(tokens());
    return reshape(attention_probabilities(at.q, at.k, {.beta = beta}), {x.size(0), x.size(0)});
  }
  Tensor wanted(const Permutation& to) const { return index_select(x, 0, Tensor::from(to, {x.size(0)}, kCpu)); }
};

double own_weight(int64_t N, double beta) { return 1 / (1 + static_cast<double>(N - 1) * std::exp(-beta)); }

// The output of a map with own_weight at the target and the rest spread evenly.
Tensor expected_output(const PermutingLayer& layer, const Permutation& to, double beta) {
  const int64_t N = layer.x.size(0);
  const double own = own_weight(N, beta), other = (1 - own) / static_cast<double>(N - 1);
  return layer.wanted(to) * static_cast<float>(own - other) + sum(layer.x, {0}, true) * static_cast<float>(other);
}

Report run_permutations(const PermutationOptions& options, const ProgressCallback&) {
  const int64_t N = options.tokens, D = options.width;
  Rng rng(options.seed);
  const Tensor x = random_normal({N, D}, 0, 1, rng, kCpu), few = random_normal({5, D}, 0, 1, rng, kCpu);
  Permutation same(static_cast<size_t>(N));
  std::iota(same.begin(), same.end(), 0);
  Permutation reversed(same.rbegin(), same.rend()), random = random_permutation(N, rng);
  const PermutingLayer identity(x, same);

  double from_weights = 0, from_mixture = 0;
  const PermutingLayer backward_layer(x, reversed);
  for (const double beta : steps(0, 20, 21)) {
    const std::vector<double> map = values_of(identity.map(static_cast<float>(beta)));
    for (int64_t i = 0; i < N; ++i)
      from_weights = std::max(from_weights, std::abs(map[static_cast<size_t>(i * N + i)] - own_weight(N, beta)));
    from_mixture = std::max(
        from_mixture, largest_difference(backward_layer.out(static_cast<float>(beta)), expected_output(backward_layer, reversed, beta)));
  }
  double of_random = 0, hard_of_random = 0, of_all = 0, done = 0;
  for (int64_t i = 0; i < options.permutations; ++i) {
    const Permutation to = random_permutation(N, rng);
    const PermutingLayer layer(x, to);
    of_random = std::max(of_random, largest_difference(layer.out(kLimitBeta), layer.wanted(to)));
    hard_of_random = std::max(hard_of_random, largest_difference(layer.hard(), layer.wanted(to)));
  }
  Permutation each{0, 1, 2, 3, 4};
  do {
    const PermutingLayer layer(few, each);
    const double error = largest_difference(layer.out(kLimitBeta), layer.wanted(each));
    of_all = std::max(of_all, error), done += error < 1e-4;
  } while (std::next_permutation(each.begin(), each.end()));

  // The remainder at the chosen beta: weight on the wrong tokens, over all rows.
  double rest_weight = 0;
  const std::vector<double> chosen = values_of(identity.map(options.beta));
  for (int64_t i = 0; i < N; ++i)
    for (int64_t j = 0; j < N; ++j) rest_weight += i == j ? 0 : chosen[static_cast<size_t>(i * N + j)] / static_cast<double>(N);

  const std::string beta_text = "β = " + setting_text(options.beta);
  Report report;
  report.statement =
      "With orthonormal position codes, queries that map the code of position i to that of position π(i) have a score of 1 there and of 0 "
      "elsewhere: the map is the permutation up to a remainder of about $(N - 1) e^{-\\beta}$, and exactly the permutation in the limit. "
      "At " +
      beta_text + " a share of " + number_text(rest_weight) + " of the weight is on the wrong tokens.";
  report.measured = {
      at_most("identity, β = 0 to 20: distance of the diagonal from the formula", 1e-5, from_weights),
      at_most("reversal, β = 0 to 20: distance of the output from the formula", 1e-4, from_mixture),
      equal_to(beta_text + ": weight on the wrong tokens", 1 - own_weight(N, options.beta), rest_weight, 1e-5),
      at_most(beta_text + ": distance of the output from the formula", 1e-4,
              largest_difference(identity.out(options.beta), expected_output(identity, same, options.beta))),
      at_most("identity, large β: distance of the output from the input", 1e-5, largest_difference(identity.out(kLimitBeta), x)),
      at_most("random permutations, large β: largest distance", 1e-5, of_random),
      at_most("random permutations, hard attention: largest distance", 0, hard_of_random),
      equal_to("permutations of 5 tokens that are expressed, of 120", 120, done),
      at_most("all of them: largest distance", 1e-5, of_all),
  };

  const std::vector<double> betas = steps(0, 14, 57);
  std::vector<double> rest, formula;
  for (double beta : betas) {
    const std::vector<double> map = values_of(identity.map(static_cast<float>(beta)));
    double others = 0;
    for (int64_t j = 1; j < N; ++j) others += map[static_cast<size_t>(j)];
    rest.push_back(others), formula.push_back(1 - own_weight(N, beta));
  }
  report.figures.push_back(figure("Weight on the wrong tokens",
                                  "The total weight of all wrong tokens is $1 - 1 / (1 + (N - 1) e^{-\\beta})$.",
                                  Plot{.body = Lines{.across = {"β"},
                                                     .up = {"weight of the others", true},
                                                     .series = {{"measured", betas, rest, Mark::points}, {"formula", betas, formula}}}}));
  Figure film{.title = "Three maps as β grows", .caption = "The same layer with different query weights.", .parameter = "β"};
  const PermutingLayer shuffled(x, random);
  for (const float beta : {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 8.0f, 12.0f, 20.0f}) {
    Frame frame{.value = setting_text(beta)};
    for (const auto& [name, layer] :
         {std::pair("identity", &identity), std::pair("reversal", &backward_layer), std::pair("random", &shuffled)}) {
      HeatMap map = heat_map(layer->map(beta), "query", "key");
      map.least = 0, map.most = 1;
      frame.plots.push_back({name, std::move(map)});
    }
    film.frames.push_back(std::move(frame));
  }
  report.figures.push_back(std::move(film));
  return report;
}

}  // namespace

Experiment identity_and_permutations() {
  return {.number = "L4",
          .name = "identity-and-permutations",
          .topic = Topic::expression,
          .title = "The identity and every permutation",
          .claim = "Self-attention with orthonormal position codes can be the identity and any permutation of its tokens.",
          .formula = R"(p_i \cdot p_j = 1[i = j], \quad q_i = p_{\pi(i)}, \quad k_j = p_j \quad \Rightarrow \quad )"
                     R"(a_{i \pi(i)} = \frac{1}{1 + (N - 1) e^{-\beta}} \to 1)",
          .setup =
              "Tokens carry orthonormal position codes, and the query weights are set to the wanted permutation. Outputs are compared with "
              "the permuted tokens: for the identity, the reversal, random permutations of many tokens, and all permutations of 5 tokens.",
          .prepare = prepared(declare_permutations, run_permutations)};
}

}  // namespace heed::lab
