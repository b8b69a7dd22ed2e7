// L1: the inverse temperature of attention, from the mean of all values to a single value.
#include <algorithm>
#include <cmath>
#include <functional>

#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct TemperatureOptions {
  int64_t tokens = 16, width = 16, betas = 65;
  float beta = 1e4f;
  uint64_t seed = 1;
};

void declare_temperature(Settings& settings, TemperatureOptions& options, Size) {
  settings.add("tokens", options.tokens, "number of queries, and of keys and values", {.least = 2, .most = 512});
  settings.add("width", options.width, "of queries, keys and values", {.least = 1, .most = 4096});
  settings.add("betas", options.betas, "points of the curve", {.least = 3, .most = 1000});
  settings.add("beta", options.beta, "the largest inverse temperature of the curve", {.least = 0.01, .most = 1e9});
  settings.add("seed", options.seed, "of the random tokens");
}

struct TemperatureTokens {
  Tensor q, k, v;  // (1, 1, N, D)

  Tensor map(float beta) const {  // (N, N)
    return reshape(attention_probabilities(q, k, {.beta = beta}), {q.size(2), k.size(2)});
  }
  Tensor out(float beta) const { return attention(q, k, v, {.beta = beta}); }
  double entropy(float beta) const {  // mean over queries
    const std::vector<float> p = map(beta).to_vector<float>();
    return entropy_of(p) / static_cast<double>(q.size(2));
  }
};

// A beta at which the second-best key has less than e^-30 of the best key's weight, for every query.
double beta_of_limit(const TemperatureTokens& tokens) {
  const int64_t N = tokens.q.size(2), D = tokens.q.size(3);
  const std::vector<double> scores = values_of(matmul(reshape(tokens.q, {N, D}), transpose(reshape(tokens.k, {N, D}), 0, 1)));
  double gap = INFINITY;
  for (int64_t i = 0; i < N; ++i) {
    std::vector<double> row(scores.begin() + i * N, scores.begin() + (i + 1) * N);
    std::nth_element(row.begin(), row.begin() + 1, row.end(), std::greater<>());
    gap = std::min(gap, row[0] - row[1]);
  }
  return 30 / std::max(gap, 1e-9);
}

Report run_temperature(const TemperatureOptions& options, const ProgressCallback&) {
  const int64_t N = options.tokens, D = options.width;
  Rng rng(options.seed);
  const auto draw = [&] { return random_normal({1, 1, N, D}, 0, 1, rng, kCpu); };
  const TemperatureTokens tokens{draw(), draw(), draw()};
  const double all = std::log(static_cast<double>(N));

  std::vector<double> betas = powers(1e-3, options.beta, static_cast<int>(options.betas)), entropies;
  for (double beta : betas) entropies.push_back(tokens.entropy(static_cast<float>(beta)));
  double rise = 0;
  for (size_t i = 1; i < entropies.size(); ++i) rise = std::max(rise, entropies[i] - entropies[i - 1]);

  // A fully connected layer mixes tokens with fixed weights: all equal, or one-hot rows.
  const Tensor v = reshape(tokens.v, {N, D});
  const Tensor equal = matmul(Tensor::full({N, N}, 1 / static_cast<double>(N), kCpu), v);
  const Tensor hard = reshape(attention_probabilities(tokens.q, tokens.k, {.hard = Hard::no_gradient}), {N, N});
  const Tensor one = matmul(hard, v);
  const Tensor mean_value = expand(mean(v, {0}, true), {N, D});
  const Tensor best = index_select(v, 0, argmax(matmul(reshape(tokens.q, {N, D}), transpose(reshape(tokens.k, {N, D}), 0, 1))));
  const double limit = beta_of_limit(tokens);
  const Tensor at_zero = reshape(tokens.out(0), {N, D}), at_limit = reshape(tokens.out(static_cast<float>(limit)), {N, D});

  Report report;
  report.statement = "The entropy of a row falls from log N = " + number_text(all) + " at β = 0 to " + number_text(entropies.back()) +
                     " at β = " + setting_text(options.beta) +
                     ". The limit is 0; these tokens reach it at about β = " + number_text(limit) +
                     ". At β = 0 every query gets the mean of all values, in the limit the value of its best key, unchanged. Both limits "
                     "are fully connected "
                     "layers: with equal weights, and with one-hot rows.";
  report.measured = {
      equal_to("entropy at β = 0 (log N)", all, tokens.entropy(0), 1e-5),
      at_most("entropy at the largest β, below log N", all, entropies.back()),
      equal_to("entropy in the limit", 0, tokens.entropy(static_cast<float>(limit)), 1e-6),
      at_most("largest increase of the entropy between two β", 1e-5, rise),
      at_most("β = 0: distance from the mean of the values", 1e-5, largest_difference(at_zero, mean_value)),
      at_most("β = 0: distance from a layer with weights 1/N", 1e-5, largest_difference(at_zero, equal)),
      at_most("limit: distance from the best key's value", 1e-5, largest_difference(at_limit, best)),
      at_most("hard attention: distance from the best key's value", 0,
              largest_difference(reshape(attention(tokens.q, tokens.k, tokens.v, {.hard = Hard::no_gradient}), {N, D}), best)),
      at_most("layer with one-hot rows: distance from the best key's value", 0, largest_difference(one, best)),
  };
  report.figures.push_back(figure(
      "Entropy of a row", "Mean over queries, from log N at β = 0 towards 0.",
      Plot{.body = Lines{.across = {"β", true},
                         .up = {"entropy, nats", false, 0.0},
                         .series = {{"measured", betas, entropies}, {"log N", {betas.front(), betas.back()}, {all, all}, Mark::dashed}}}}));
  Figure film{.title = "The map as β grows", .caption = "Each row is a query's weights over all keys; a row sums to 1.", .parameter = "β"};
  for (const float beta : {0.0f, 0.05f, 0.1f, 0.2f, 0.35f, 0.5f, 0.7f, 1.0f, 1.5f, 2.5f, 5.0f, 10.0f, 100.0f}) {
    HeatMap map = heat_map(tokens.map(beta), "query", "key");
    map.least = 0, map.most = 1;
    film.frames.push_back({setting_text(beta), {Plot{.body = std::move(map)}}});
  }
  report.figures.push_back(std::move(film));
  return report;
}

}  // namespace

Experiment softmax_temperature() {
  return {.number = "L1",
          .name = "softmax-temperature",
          .topic = Topic::temperature,
          .title = "From the mean to one value: the inverse temperature",
          .claim = "As the inverse temperature grows from 0, attention changes from the plain mean of all values to the selection of one.",
          .formula = R"(h_i = \sum_j a_{ij} v_j, \quad a_{ij} = \frac{e^{\beta q_i \cdot k_j}}{\sum_m e^{\beta q_i \cdot k_m}}, \quad )"
                     R"(0 \le -\sum_j a_{ij} \log a_{ij} \le \log N)",
          .setup =
              "Queries, keys and values are random. The entropy of the attention map is measured over a range of $\\beta$. At both ends "
              "the outputs are compared with the mean of all values, with the value of the best key, and with fully connected layers that "
              "have the same weights.",
          .prepare = prepared(declare_temperature, run_temperature)};
}

}  // namespace heed::lab
