// L3: the attention weight of a key that is scaled up.
#include <algorithm>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct StretchOptions {
  int64_t queries = 64, keys = 16, width = 16, key = 0;
  float beta = 0.25f, stretch = 50;
  uint64_t seed = 1;
};

void declare_stretch(Settings& settings, StretchOptions& options, Size) {
  settings.add("queries", options.queries, "number of queries", {.least = 16, .most = 4096});
  settings.add("keys", options.keys, "number of keys and values", {.least = 2, .most = 4096});
  settings.add("width", options.width, "of queries, keys and values", {.least = 1, .most = 1024});
  settings.add("key", options.key, "which key is stretched, from 0", {.least = 0, .most = 4095});
  settings.add("beta", options.beta, "inverse temperature", {.least = 0.001, .most = 4});
  settings.add("stretch", options.stretch, "the largest factor in the figures", {.least = 2, .most = 1000});
  settings.add("seed", options.seed, "of the random tokens");
}

struct StretchedKey {
  Tensor q, k, v;  // (1, 1, Q, D), (1, 1, M, D), (1, 1, M, D)
  int64_t j;
  float beta;

  Tensor keys(double factor) const {
    std::vector<float> factors(static_cast<size_t>(k.size(2)), 1);
    factors[static_cast<size_t>(j)] = static_cast<float>(factor);
    return k * Tensor::from(factors, {k.size(2), 1}, kCpu);
  }
  Tensor map(double factor) const {  // (Q, M)
    return reshape(attention_probabilities(q, keys(factor), {.beta = beta}), {q.size(2), k.size(2)});
  }
  std::vector<double> weights(double factor) const { return values_of(slice(map(factor), 1, j, j + 1)); }  // of the key, by query
  Tensor out(double factor, const std::vector<Term>& terms = {}) const {                                   // (Q, D)
    return reshape(attention(q, keys(factor), v, {.beta = beta, .terms = terms}), {q.size(2), v.size(3)});
  }
};

// The weight as a logistic curve in the factor s: a = 1 / (1 + e^(rest - s beta q.k)).
struct StretchCurve {
  double score, rest;  // beta q.k_j, log of the sum of e^(beta q.k_m) over the others
  double at(double factor) const { return 1 / (1 + std::exp(rest - factor * score)); }
};

std::vector<StretchCurve> stretch_curves(const StretchedKey& tokens) {
  const std::vector<double> q = values_of(tokens.q), k = values_of(tokens.k);
  const auto D = static_cast<size_t>(tokens.q.size(3)), M = static_cast<size_t>(tokens.k.size(2)), j = static_cast<size_t>(tokens.j);
  std::vector<StretchCurve> out;
  for (size_t i = 0; i < static_cast<size_t>(tokens.q.size(2)); ++i) {
    std::vector<double> scores(M);
    for (size_t m = 0; m < M; ++m)
      for (size_t d = 0; d < D; ++d) scores[m] += tokens.beta * q[i * D + d] * k[m * D + d];
    const double max_score = *std::max_element(scores.begin(), scores.end());
    double others = 0;
    for (size_t m = 0; m < M; ++m) others += m == j ? 0 : std::exp(scores[m] - max_score);
    out.push_back({scores[j], max_score + std::log(others)});
  }
  return out;
}

// The largest distance over rows whose score has that sign. a, b: (Q, D)
double distance_of_rows(const Tensor& a, const Tensor& b, const std::vector<StretchCurve>& curves, bool positive) {
  const std::vector<double> distances = values_of(sqrt(max((a - b) * (a - b), {1})));
  double out = 0;
  for (size_t i = 0; i < curves.size(); ++i)
    if ((curves[i].score > 0) == positive) out = std::max(out, distances[i]);
  return out;
}

void draw_stretch(Report& report, const StretchOptions& options, const StretchedKey& tokens, const std::vector<StretchCurve>& curves) {
  std::vector<size_t> order(curves.size());  // of the queries, by their score with the key
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return curves[a].score > curves[b].score; });
  const std::vector<double> factors = powers(1, options.stretch, 33);
  std::vector<std::vector<double>> weights;  // by factor and query
  for (double factor : factors) weights.push_back(tokens.weights(factor));
  Lines lines{.across = {"stretch s", true}, .up = {"weight of the key", true, 1e-6, 1.0}};
  for (const size_t place : {size_t{0}, order.size() / 6, order.size() / 3, 2 * order.size() / 3, 5 * order.size() / 6, order.size() - 1}) {
    const size_t query = order[place];
    Series series{.name = "β q·k = " + number_text(curves[query].score), .x = factors};
    for (const std::vector<double>& each : weights) series.y.push_back(each[query]);
    lines.series.push_back(std::move(series));
  }
  report.figures.push_back(figure("Up or down, by the sign of q·k", "Six queries, from the highest score with the key to the lowest.",
                                  Plot{.body = std::move(lines)}));

  Figure film{
      .title = "The weight of the key, query by query",
      .caption = "Left: one point per query. Right: all weights, queries sorted by q·k in descending order. The curve becomes a step.",
      .parameter = "s"};
  std::vector<int64_t> rows(order.begin(), order.end());
  const double reach = std::max(std::abs(curves[order.front()].score), std::abs(curves[order.back()].score));
  for (const double factor : {1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0}) {
    if (factor > options.stretch) break;
    Lines points{
        .across = {"β q·k", false, -reach, reach}, .up = {"weight of the key", false, 0.0, 1.0}, .series = {{.mark = Mark::points}}};
    const std::vector<double> now = tokens.weights(factor);
    for (size_t i = 0; i < curves.size(); ++i) points.series[0].x.push_back(curves[i].score), points.series[0].y.push_back(now[i]);
    HeatMap map = heat_map(index_select(tokens.map(factor), 0, Tensor::from(rows, {std::ssize(rows)}, kCpu)), "query, by q·k", "key");
    map.least = 0, map.most = 1;
    film.frames.push_back({setting_text(factor), {Plot{.body = std::move(points)}, Plot{.body = std::move(map)}}});
  }
  report.figures.push_back(std::move(film));
}

Report run_stretch(const StretchOptions& options, const ProgressCallback&) {
  const int64_t Q = options.queries, M = options.keys, D = options.width;
  check<UsageError>(options.key < M, "lab: key is ", options.key, ", expected one of the ", M, " keys, from 0");
  Rng rng(options.seed);
  const Tensor q = random_normal({1, 1, Q, D}, 0, 1, rng, kCpu), k = random_normal({1, 1, M, D}, 0, 1, rng, kCpu);
  const StretchedKey tokens{q, k, random_normal({1, 1, M, D}, 0, 1, rng, kCpu), options.key, options.beta};
  const std::vector<StretchCurve> curves = stretch_curves(tokens);

  double far = 1, positive = 0;  // large enough that even the query closest to a right angle has saturated
  for (const StretchCurve& curve : curves) {
    far = std::max(far, (std::abs(curve.rest) + 30) / std::abs(curve.score));
    positive += curve.score > 0;
  }
  double from_formula = 0, wrong_way = 0;
  std::vector<double> before = tokens.weights(1);
  for (const double factor : powers(1, options.stretch, 33)) {
    const std::vector<double> now = tokens.weights(factor);
    for (size_t i = 0; i < now.size(); ++i) {
      from_formula = std::max(from_formula, std::abs(now[i] - curves[i].at(factor)));
      wrong_way = std::max(wrong_way, (curves[i].score > 0 ? before[i] - now[i] : now[i] - before[i]));
    }
    before = now;
  }
  double higher = 0, least = 1, most = 0;
  const std::vector<double> last = tokens.weights(far);
  for (size_t i = 0; i < last.size(); ++i) {
    higher += last[i] > 0.5;
    if (curves[i].score > 0)
      least = std::min(least, last[i]);
    else
      most = std::max(most, last[i]);
  }
  const auto count = static_cast<double>(Q);
  const Tensor at_end = tokens.out(far), its_value = expand(slice(reshape(tokens.v, {M, D}), 0, options.key, options.key + 1), {Q, D});
  std::vector<uint8_t> others(static_cast<size_t>(M), 1);
  others[static_cast<size_t>(options.key)] = 0;
  const Tensor without = tokens.out(1, {Mask{cast(Tensor::from(others, {1, 1, 1, M}, kCpu), DType::boolean)}});

  Report report;
  report.statement =
      "A longer key gets all the weight of queries with $q \\cdot k > 0$ and none of those with $q \\cdot k < 0$: the first end with its "
      "value alone, the others with their output without it. The weight is a logistic curve in the factor: its log-odds are a "
      "straight line of slope $\\beta q \\cdot k$.";
  report.measured = {
      at_most("distance of the weights from the logistic curve", 1e-4, from_formula),
      at_most("largest step against the sign of q·k", 1e-6, wrong_way),
      equal_to("q·k > 0: smallest weight in the limit", 1, least, 1e-4),
      equal_to("q·k < 0: largest weight in the limit", 0, most, 1e-4),
      at_most("q·k > 0: distance of the output from the key's value", 1e-3, distance_of_rows(at_end, its_value, curves, true)),
      at_most("q·k < 0: distance from the output without the key", 1e-3, distance_of_rows(at_end, without, curves, false)),
      equal_to("share of queries whose weight increases (those with q·k > 0)", positive / count, higher / count),
      contradicts("share of queries whose weight increases", 1, higher / count),
  };
  draw_stretch(report, options, tokens, curves);
  return report;
}

}  // namespace

Experiment stretched_key() {
  return {
      .number = "L3",
      .name = "stretched-key",
      .topic = Topic::temperature,
      .title = "A key that is scaled up",
      .claim = "Stretching a key by $s$ drives its weight to 1 for queries with $q \\cdot k > 0$ and to 0 for those with $q \\cdot k < 0$.",
      .formula = R"(a_j(s) = \frac{1}{1 + e^{r - s \beta q \cdot k_j}}, \quad r = \log \sum_{m \ne j} e^{\beta q \cdot k_m}, \quad )"
                 R"(a_j(\infty) = 1 \;\text{or}\; 0)",
      .published = "The attention that a stretched key gets is higher.",
      .setup =
          "One of several random keys is multiplied by a growing factor $s$, and its weight is measured for every query. The limit is "
          "measured at a factor so large that every weight is 0 or 1 up to rounding.",
      .expected = Verdict::corrected,
      .prepare = prepared(declare_stretch, run_stretch)};
}

}  // namespace heed::lab
