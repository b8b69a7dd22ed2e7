// L8: the derivative of the softmax, where it vanishes, and the effect of scaling.
#include <algorithm>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"
#include "heed/train/settings_value.h"

namespace heed::lab {
namespace {

const std::vector<float> kSaturated{-3, 1, 100, 5, -1};  // the scores of the claim

struct SaturationOptions {
  std::string scores = "-3,1,100,5,-1";
  int64_t keys = 16, draws = 1024, widest = 1024;
  uint64_t seed = 1;
};

void declare_saturation(Settings& settings, SaturationOptions& options, Size size) {
  if (size == Size::full) options.draws = 8192, options.widest = 4096;
  settings.add("scores", options.scores, "comma-separated numbers, for the figures");
  settings.add("keys", options.keys, "of random queries", {.least = 2, .most = 256});
  settings.add("draws", options.draws, "random queries per width", {.least = 16, .most = 100000});
  settings.add("widest", options.widest, "the largest width of random queries and keys", {.least = 64, .most = 4096});
  settings.add("seed", options.seed, "of the random queries and keys");
}

std::vector<float> scores_in(const std::string& text) {
  std::vector<float> out;
  for (const std::string& number : heed::split(text, ',')) {
    const std::optional<float> value = parse_number<float>(number);
    check<UsageError>(value && std::abs(*value) <= 1e4f, "lab: scores has ", quoted(number),
                      ", expected comma-separated numbers between -10000 and 10000");
    out.push_back(*value);
  }
  check<UsageError>(out.size() >= 2 && out.size() <= 64, "lab: scores has ", out.size(), " numbers, expected 2 to 64");
  return out;
}

// d softmax(beta z)_i / d z_j by autograd. -> (N, N)
Tensor jacobian_of_softmax(const std::vector<float>& scores, float beta) {
  const int64_t N = std::ssize(scores);
  Tensors rows;
  for (int64_t i = 0; i < N; ++i) {
    Tensor z = Tensor::from(scores, {1, N}, kCpu);
    z.require_grad();
    std::vector<float> one(static_cast<size_t>(N));
    one[static_cast<size_t>(i)] = 1;
    backward(softmax(z * beta), Tensor::from(one, {1, N}, kCpu));
    rows.push_back(z.grad());
  }
  return concat(rows, 0);
}

struct SoftmaxFormula {
  std::vector<double> y = {}, jacobian = {};  // jacobian: N N

  SoftmaxFormula(const std::vector<float>& scores, double beta) {
    const double max_score = *std::max_element(scores.begin(), scores.end());
    double sum_of_exp = 0;
    for (const double z : scores) y.push_back(std::exp(beta * (z - max_score))), sum_of_exp += y.back();
    for (double& each : y) each /= sum_of_exp;
    for (size_t i = 0; i < y.size(); ++i)
      for (size_t j = 0; j < y.size(); ++j) {
        double others = 0;  // 1 - y_i without cancellation
        for (size_t m = 0; m < y.size(); ++m) others += m == i ? 0 : y[m];
        jacobian.push_back(beta * y[i] * (i == j ? others : -y[j]));
      }
  }
  double largest_entry() const {
    double out = 0;
    for (double each : jacobian) out = std::max(out, std::abs(each));
    return out;
  }
};

double distance_from_formula(const std::vector<float>& scores, double beta) {
  const std::vector<double> found = values_of(jacobian_of_softmax(scores, static_cast<float>(beta)));
  const SoftmaxFormula formula(scores, static_cast<float>(beta));
  double out = 0;
  for (size_t i = 0; i < found.size(); ++i) out = std::max(out, std::abs(found[i] - formula.jacobian[i]));
  return out;
}

// 1 - sum of y^2, the trace of the Jacobian, averaged over queries with random keys.
double trace_of_random(const SaturationOptions& options, int64_t d, bool scaled, Rng& rng) {
  const int64_t rows = 16, batches = std::max<int64_t>(1, options.draws / rows);
  double sum_of_squares = 0;
  for (int64_t b = 0; b < batches; b += 16) {  // in chunks that fit into the cache
    const int64_t B = std::min<int64_t>(16, batches - b);
    const Tensor q = random_normal({B, 1, rows, d}, 0, 1, rng, kCpu), k = random_normal({B, 1, options.keys, d}, 0, 1, rng, kCpu);
    const Tensor y = attention_probabilities(q, k, {.beta = scaled ? Beta() : Beta(1.0f)});
    sum_of_squares += sum(y * y).item<float>();
  }
  return 1 - sum_of_squares / static_cast<double>(batches * rows);
}

void draw_saturation(Report& report, const std::vector<float>& scores) {
  Figure film{.title = "The derivative as the scores are scaled",
              .caption = "Scores times $\\beta$: their softmax, and its derivative with respect to the scaled scores.",
              .parameter = "β"};
  std::vector<std::string> names;
  for (const float score : scores) names.push_back("z = " + number_text(score));
  Table table{.title = "Scaled scores",
              .columns = {"β", "largest y", "largest entry, with respect to the scaled score", "largest entry, with respect to the score"}};
  for (const float beta : {0.0f, 0.003f, 0.01f, 0.02f, 0.03f, 0.05f, 0.1f, 0.2f, 0.5f, 1.0f}) {
    const SoftmaxFormula formula(scores, beta);
    const Tensor scaled = softmax(Tensor::from(scores, {1, std::ssize(scores)}, kCpu) * beta);
    std::vector<float> shifted;
    for (const float score : scores) shifted.push_back(beta * score);
    HeatMap map = heat_map(jacobian_of_softmax(shifted, 1), "output", "score");
    map.diverging = true, map.least = -0.25, map.most = 0.25;
    Bars bars{.up = {"softmax", false, 0.0, 1.0}, .groups = names, .sets = {{.name = "y", .values = values_of(scaled)}}};
    film.frames.push_back({setting_text(beta), {Plot{"derivative", std::move(map)}, Plot{"softmax", std::move(bars)}}});
    table.rows.push_back({setting_text(beta), static_cast<double>(max(scaled).item()),
                          beta > 0 ? formula.largest_entry() / beta : SoftmaxFormula(shifted, 1).largest_entry(), formula.largest_entry()});
  }
  report.figures.push_back(std::move(film));
  report.tables.push_back(std::move(table));
}

Report run_saturation(const SaturationOptions& options, const ProgressCallback& progress) {
  const std::vector<float> scores = scores_in(options.scores);
  Report report;
  report.statement =
      "The derivative is $y_i (1[i = j] - y_j)$. At these scores $y$ is one-hot, so all entries vanish and no gradient passes through this "
      "softmax. Scaling the scores avoids that; with $\\beta = 1 / \\sqrt{d}$ the derivative no longer depends on the width of random "
      "queries and keys.";
  double distance = 0, best = 0, vanished = 0;
  for (const double beta : powers(1e-3, 1, 61)) {
    distance = std::max({distance, distance_from_formula(scores, beta), distance_from_formula(kSaturated, beta)});
    std::vector<float> scaled;
    for (const float score : kSaturated) scaled.push_back(static_cast<float>(beta) * score);
    best = std::max(best, largest(jacobian_of_softmax(scaled, 1)));
  }
  const Tensor saturated = jacobian_of_softmax(kSaturated, 1);
  for (const double each : values_of(saturated)) vanished += std::abs(each) < 1e-30;

  std::vector<double> widths, plain, scaled;
  Rng rng(options.seed);
  for (int64_t d = 4; d <= options.widest; d *= 2) {
    progress("d = " + std::to_string(d));
    widths.push_back(static_cast<double>(d));
    plain.push_back(trace_of_random(options, d, false, rng)), scaled.push_back(trace_of_random(options, d, true, rng));
  }
  const double sampling = std::sqrt(std::max(1.0, 1024 / static_cast<double>(options.draws)));  // error of a mean of few draws
  report.measured = {
      equal_to("entries that vanish at z = (−3, 1, 100, 5, −1), of 25", 25, vanished),
      at_most("largest entry there by the formula in double precision", 1e-41, SoftmaxFormula(kSaturated, 1).largest_entry()),
      at_most("largest entry there by heed's gradient", 1e-30, largest(saturated)),
      at_most("distance of all entries from y (1[i=j] − y), β = 0.001 to 1", 1e-6, distance),
      close_to("largest entry over all β (¼, where y = ½)", 0.25, best, 0.02),
      equal_to("random scores over √d: exponent of the trace in d", 0, fitted_power(widths, scaled).exponent, 0.05 * sampling),
      // The two largest of M Gaussian scores of deviation √d are about √(d / 2 log M) apart; only where they are close the trace is not 0.
      at_most("random scores, not scaled: trace at the largest d, relative to that over √d",
              2 * std::sqrt(2 * std::log(static_cast<double>(options.keys)) / widths.back()) * sampling, plain.back() / scaled.back()),
  };
  draw_saturation(report, scores);
  report.figures.push_back(figure(
      "Trace of the derivative by width",
      "The trace of the derivative, $1 - \\sum_i y_i^2$, averaged over random queries. Dividing by $\\sqrt{d}$ keeps it constant.",
      Plot{.body = Lines{.across = {"d", true},
                         .up = {"trace", false, 0.0, 1.0},
                         .series = {{"softmax of q·k", widths, plain, Mark::both}, {"softmax of q·k / √d", widths, scaled, Mark::both}}}}));
  return report;
}

}  // namespace

Experiment softmax_saturation() {
  return {.number = "L8",
          .name = "softmax-saturation",
          .topic = Topic::statistics,
          .title = "Where the gradient of the softmax vanishes",
          .claim = "At $z = (-3, 1, 100, 5, -1)$ all 25 entries of the derivative of the softmax vanish; scaling the scores restores them.",
          .formula = R"(\frac{\partial y_i}{\partial z_j} = y_i (1[i = j] - y_j), \quad y = \softmax(z))",
          .setup =
              "The derivative of the softmax is computed by autograd, at the given scores and at the same scores times $\\beta$ from 0.001 "
              "to 1. Then the trace of the derivative is averaged over the scores of random queries and keys, with and without division by "
              "$\\sqrt{d}$.",
          .prepare = prepared(declare_saturation, run_saturation)};
}

}  // namespace heed::lab
