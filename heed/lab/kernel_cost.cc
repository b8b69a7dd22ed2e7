// L18: linear attention, multiplied in two orders: the same numbers at a cost of N² or N.
#include <cmath>

#include "heed/attention/attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/probabilities.h"
#include "heed/core/work_count.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct KernelCostOptions {
  int64_t width = 64, least_tokens = 16, lengths = 8;
  std::string features = "elu";
  int64_t rounds = 5;
  uint64_t seed = 1;
};

void declare_kernel_cost(Settings& settings, KernelCostOptions& options, Size size) {
  if (size == Size::full) options.lengths = 9, options.rounds = 11;
  settings.add("width", options.width, "D, of queries, keys and values", {.least = 1, .most = 1024});
  settings.add("least_tokens", options.least_tokens, "the smallest N", {.least = 2, .most = 65536});
  settings.add("lengths", options.lengths, "number of lengths, each twice the previous one", {.least = 4, .most = 16});
  settings.add("features", options.features, "feature map that replaces the exponential", {.choices = {"elu", "relu"}});
  settings.add("rounds", options.rounds, "timing rounds", {.least = 3, .most = 1000});
  settings.add("seed", options.seed, "of the tokens");
}

struct KernelTokens {
  Tensor q, k, v;                    // (1, 1, N, D)
  LinearAttentionOptions sums, map;  // the two orders

  KernelTokens(const KernelCostOptions& options, int64_t N, Rng& rng) {
    const Shape shape{1, 1, N, options.width};
    q = random_normal(shape, 0, 1, rng, kCpu), k = random_normal(shape, 0, 1, rng, kCpu), v = random_normal(shape, 0, 1, rng, kCpu);
    sums.map = options.features == "elu" ? FeatureMap::elu : FeatureMap::relu;
    map = sums;
    map.quadratic = true;
  }
  Tensor by_sums() const { return linear_attention(q, k, v, sums); }  // phi(q) (phi(k)^T v)
  Tensor by_map() const { return linear_attention(q, k, v, map); }    // (phi(q) phi(k)^T) v
  Tensor causal() const {
    LinearAttentionOptions masked = sums;
    masked.causal = true;
    return linear_attention(q, k, v, masked);
  }
};

double counted_work(const std::function<Tensor()>& attend) {
  const WorkCount count;
  attend();
  return static_cast<double>(count.multiply_adds());
}

// Small integers, whose sums are exact in any order: only the division rounds.
double difference_on_integers(const KernelCostOptions& options, Rng& rng) {
  KernelTokens x(options, 64, rng);
  x.sums.map = x.map.map = FeatureMap::elu;  // x + 1 for x above 0
  const auto integers = [&](int64_t least, int64_t most) {
    std::vector<float> values;
    for (int64_t i = 0; i < x.q.count(); ++i) values.push_back(static_cast<float>(least + (7 * i + i / 5) % (most - least + 1)));
    return Tensor::from(values, x.q.shape(), kCpu);
  };
  x.q = integers(1, 3), x.k = integers(1, 5), x.v = integers(-4, 4);
  return largest_difference(x.by_sums(), x.by_map());
}

Tensor kernel_cost_map(const KernelTokens& x) {  // (N, N): normalised weights, rows sum to 1
  const int64_t N = x.q.size(2), D = x.q.size(3);
  const Tensor q = reshape(linear_attention_features(x.q, x.sums).features, {N, D}),
               k = reshape(linear_attention_features(x.k, x.sums).features, {N, D});
  const Tensor products = matmul(q, transpose(k, 0, 1));
  return products / sum(products, {1}, true);
}

Report run_kernel_cost(const KernelCostOptions& options, const ProgressCallback& progress) {
  const auto D = static_cast<double>(options.width);
  Rng rng(options.seed);
  std::vector<KernelTokens> sequences;
  std::vector<double> tokens, sums_work, map_work;
  std::vector<std::function<void()>> functions;
  Report report;
  report.statement =
      "Without the softmax between them the two products are associative: φ(Q)(φ(K)ᵀV) is (φ(Q)φ(K)ᵀ)V, in O(N D²) instead of O(N² D) and "
      "without a map. The multiply-adds are equal at N = (2D² + D) / 2D, about D; for longer sequences computing the sums first is "
      "cheaper.";
  double apart = 0;
  for (int64_t i = 0; i < options.lengths; ++i) sequences.emplace_back(options, options.least_tokens << i, rng);
  for (const KernelTokens& x : sequences) {
    const auto n = static_cast<double>(x.q.size(2));
    const std::string name = ", N = " + std::to_string(x.q.size(2));
    tokens.push_back(n);
    sums_work.push_back(counted_work([&] { return x.by_sums(); })), map_work.push_back(counted_work([&] { return x.by_map(); }));
    if (tokens.size() == 1 || tokens.size() == sequences.size()) {
      report.measured.push_back(equal_to("sums first" + name + ": N (2D² + D)", n * (2 * D * D + D), sums_work.back()));
      report.measured.push_back(equal_to("map first" + name + ": 2 N² D", 2 * n * n * D, map_work.back()));
    }
    apart = std::max(apart, largest_difference(x.by_sums(), x.by_map()) / largest(x.by_map()));
    functions.emplace_back([&x] { x.by_sums(); });
    functions.emplace_back([&x] { x.by_map(); });
    functions.emplace_back([&x] { x.causal(); });
    functions.emplace_back([&x] { attention(x.q, x.k, x.v); });
  }
  progress("times");
  const std::vector<double> seconds = processor_seconds(functions, static_cast<int>(options.rounds));
  std::vector<double> by_sums, by_map, causal, softmax_ms;
  Table table{.title = "Milliseconds", .columns = {"N", "sums first", "map first", "sums first, causal", "softmax"}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    by_sums.push_back(1e3 * seconds[4 * i]), by_map.push_back(1e3 * seconds[4 * i + 1]);
    causal.push_back(1e3 * seconds[4 * i + 2]), softmax_ms.push_back(1e3 * seconds[4 * i + 3]);
    table.rows.push_back({tokens[i], by_sums[i], by_map[i], causal[i], softmax_ms[i]});
  }
  // Exponents are fitted to long sequences: short ones are dominated by call overhead.
  const auto long_ones = [](const std::vector<double>& all) { return std::span(all).last(std::min<size_t>(4, all.size())); };
  const auto exponent = [&](const std::vector<double>& all) { return fitted_power(long_ones(tokens), long_ones(all)).exponent; };
  const double meet = (2 * D * D + D) / (2 * D);
  report.measured.push_back(at_most("the two orders: difference, relative to the largest output", 1e-5, apart));
  report.measured.push_back(at_most("the two orders on small integers: difference", 5e-7, difference_on_integers(options, rng)));
  report.measured.push_back(by_clock(equal_to("sums first: exponent of time in N", 1, exponent(by_sums), 0.25)));
  report.measured.push_back(by_clock(equal_to("sums first, causal: exponent of time in N", 1, exponent(causal), 0.35)));
  report.measured.push_back(by_clock(equal_to("map first: exponent of time in N", 2, exponent(by_map), 0.4)));
  report.measured.push_back(by_clock(equal_to("softmax: exponent of time in N", 2, exponent(softmax_ms), 0.4)));
  if (const std::optional<double> counted = crossover(tokens, sums_work, map_work))
    report.measured.push_back(close_to("N with equal multiply-adds: (2D² + D) / 2D", meet, *counted, 1e-6));
  const std::optional<double> timed = crossover(tokens, by_sums, by_map), against_softmax = crossover(tokens, by_sums, softmax_ms);
  if (timed) report.measured.push_back(by_clock(at_most("N from which sums first are faster than the map", 4 * meet, *timed)));
  if (against_softmax)
    report.measured.push_back(by_clock(at_most("N from which sums first are faster than softmax", 8 * meet, *against_softmax)));
  report.tables.push_back(std::move(table));
  report.figures.push_back(figure(
      "Time against tokens",
      "N to the " + number_text(exponent(by_sums)) + " with sums first, to the " + number_text(exponent(by_map)) + " with the map first.",
      Plot{.body = Lines{.across = {"tokens N", true},
                         .up = {"milliseconds", true},
                         .series = {{"sums first", tokens, by_sums, Mark::both},
                                    {"sums first, causal", tokens, causal, Mark::dashed},
                                    {"map first", tokens, by_map, Mark::both},
                                    {"softmax", tokens, softmax_ms, Mark::both}}}}));
  const KernelTokens few(options, 24, rng);
  report.figures.push_back(figure("Difference from softmax",
                                  "The same queries and keys: feature maps spread the weights more evenly than the exponential.",
                                  {Plot{"Linear", heat_map(kernel_cost_map(few), "query", "key")},
                                   Plot{"Softmax", heat_map(reshape(attention_probabilities(few.q, few.k), {24, 24}), "query", "key")}}));
  return report;
}

}  // namespace

Experiment kernel_cost() {
  return {
      .number = "L18",
      .name = "kernel-cost",
      .topic = Topic::cost,
      .title = "Attention that is linear in the tokens",
      .claim =
          "With feature maps instead of the softmax, attention can be multiplied in another order: the same numbers at a cost linear in N.",
      .formula = R"((\phi(Q) \, \phi(K)^T) \, V = \phi(Q) \, (\phi(K)^T V), \quad 2 N^2 D \;\to\; N (2 D^2 + D))",
      .setup =
          "Linear attention is computed in both orders for sequence lengths that double, next to softmax attention. Outputs are compared, "
          "multiply-adds are counted, and processor time is measured.",
      .prepare = prepared(declare_kernel_cost, run_kernel_cost)};
}

}  // namespace heed::lab
