// L7: mean and variance of the dot product of two Gaussian vectors, and why scores are divided by sqrt(d).
#include <algorithm>
#include <cmath>

#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct VarianceOptions {
  int64_t samples = 200000, least_width = 8, widths = 5;
  float mean = 0.5f, deviation = 1;
  uint64_t seed = 1;
};

void declare_variance(Settings& settings, VarianceOptions& options, Size size) {
  if (size == Size::full) options.samples = 1000000, options.widths = 8;
  settings.add("samples", options.samples, "pairs of vectors per width", {.least = 1000, .most = 1e8});
  settings.add("least_width", options.least_width, "the smallest d", {.least = 1, .most = 4096});
  settings.add("widths", options.widths, "number of widths, each twice the previous one", {.least = 2, .most = 10});
  settings.add("mean", options.mean, "of every element, mu", {.least = -10, .most = 10});
  settings.add("deviation", options.deviation, "of every element, sigma", {.least = 0.01, .most = 10});
  settings.add("seed", options.seed, "of the random vectors");
}

struct Moments {
  double mean, variance;
  double term_variance;  // of the products q_i k_i of single elements
};

// Moments of q.k over all samples, in chunks that fit into the cache.
Moments product_moments(const VarianceOptions& options, int64_t d, Rng& rng) {
  const int64_t chunk = std::max<int64_t>(1, (1 << 18) / d);
  double sum = 0, squares = 0, term_sum = 0, term_squares = 0;
  for (int64_t done = 0; done < options.samples; done += chunk) {
    const int64_t rows = std::min(chunk, options.samples - done);
    const Tensor q = random_normal({rows, d}, options.mean, options.deviation, rng, kCpu);
    const Tensor k = random_normal({rows, d}, options.mean, options.deviation, rng, kCpu);
    const Tensor terms = q * k;
    for (const double term : values_of(terms)) term_sum += term, term_squares += term * term;
    for (const double product : values_of(heed::sum(terms, {1}))) sum += product, squares += product * product;
  }
  const auto variance = [](double total, double total_squares, double count) {
    return (total_squares / count - total / count * (total / count)) * count / (count - 1);
  };
  const auto count = static_cast<double>(options.samples);
  return {sum / count, variance(sum, squares, count), variance(term_sum, term_squares, count * static_cast<double>(d))};
}

// A published value: contradicted where it differs from the right one by more than the measurement can err, else in agreement.
void judge_published(Report& report, const std::string& name, double published, double right, double found) {
  constexpr double kApart = 0.05;
  if (std::abs(published - right) > kApart * right)
    report.measured.push_back(contradicts(name, published, found, kApart / 2));
  else
    report.measured.push_back(close_to(name + ", as published", published, found, kApart));
}

Report run_variance(const VarianceOptions& options, const ProgressCallback& progress) {
  const double mu = options.mean, sigma = options.deviation;
  const double term_right = 2 * sigma * sigma * mu * mu + std::pow(sigma, 4), term_wrong = sigma * sigma * mu * mu + std::pow(sigma, 4);
  std::vector<double> widths, variances, right, wrong, scaled;
  double term_variance = 0;
  // Of a measured variance, relative: three standard errors for the default number of samples.
  const double sampling = 0.02 * std::sqrt(std::max(1.0, 200'000 / static_cast<double>(options.samples)));
  Rng rng(options.seed);
  Report report;
  report.statement =
      "E = μ·μ and Var = 2σ² μ·μ + d σ⁴: for a fixed mean of the elements both terms grow as d, so the variance of a score divided by √d "
      "does not depend on the width. The published form has an extra factor d in the first term. Its variance of one term, $q_i k_i$, "
      "counts $\\sigma^2 \\mu_i^2$ once; it occurs twice, once for the query and once for the key.";
  Table table{.title = "Measured moments", .columns = {"d", "mean", "μ·μ", "variance", "2σ² μ·μ + d σ⁴", "variance of q·k/√d"}};
  for (int64_t i = 0; i < options.widths; ++i) {
    const int64_t width = options.least_width << i;
    progress("d = " + std::to_string(width));
    const auto d = static_cast<double>(width);
    const Moments found = product_moments(options, width, rng);
    const double square = d * mu * mu, variance = 2 * sigma * sigma * square + d * std::pow(sigma, 4);
    const double error = std::sqrt(variance / static_cast<double>(options.samples));  // of the mean
    report.measured.push_back(
        equal_to("mean of q·k, d = " + std::to_string(width), square, found.mean, std::max(0.02 * square, 4 * error)));
    report.measured.push_back(close_to("variance of q·k, d = " + std::to_string(width), variance, found.variance, sampling));
    widths.push_back(d), variances.push_back(found.variance), right.push_back(variance), scaled.push_back(found.variance / d);
    term_variance = found.term_variance;
    wrong.push_back(d * (2 * sigma * sigma * square + std::pow(sigma, 4)));
    table.rows.push_back({d, found.mean, square, found.variance, variance, found.variance / d});
  }
  report.measured.push_back(equal_to("exponent of the variance in d", 1, fitted_power(widths, variances).exponent, sampling));
  report.measured.push_back(equal_to("exponent after dividing by √d", 0, fitted_power(widths, scaled).exponent, sampling));
  report.measured.push_back(close_to("variance of one term q_i k_i", term_right, term_variance, sampling));
  judge_published(report, "variance of one term", term_wrong, term_right, term_variance);
  judge_published(report, "variance at the largest d", wrong.back(), right.back(), variances.back());
  if (verdict_of(report) == Verdict::holds)
    report.agrees = "At mean = " + setting_text(mu) + ", deviation = " + setting_text(sigma) +
                    (mu == 0 ? " the terms with $\\mu \\cdot \\mu$ are 0 and the published formulas coincide with the right ones."
                             : " the terms with $\\mu \\cdot \\mu$ are too small to tell the published formulas from the right ones.");
  report.tables.push_back(std::move(table));
  report.figures.push_back(figure("Variance of q·k", "Dividing by √d makes it constant; the published formula grows as d².",
                                  Plot{.body = Lines{.across = {"d", true},
                                                     .up = {"variance", true},
                                                     .series = {{"measured", widths, variances, Mark::points},
                                                                {"2σ² μ·μ + d σ⁴", widths, right},
                                                                {"published", widths, wrong, Mark::dashed},
                                                                {"measured, q·k/√d", widths, scaled, Mark::both}}}}));
  return report;
}

}  // namespace

Experiment dot_product_variance() {
  return {.number = "L7",
          .name = "dot-product-variance",
          .topic = Topic::statistics,
          .title = "Why scores are divided by √d",
          .claim = "The variance of the dot product of a query and a key with Gaussian elements grows in proportion to their width d.",
          .formula = R"(q, k \sim \mathcal{N}(\mu, \sigma^2 I): \quad \mathrm{E}[q \cdot k] = \mu \cdot \mu, \quad )"
                     R"(\mathrm{Var}[q \cdot k] = 2 \sigma^2 \mu \cdot \mu + d \sigma^4)",
          .published = R"($\mathrm{Var}[q \cdot k] = d \, (2 \sigma^2 \mu \cdot \mu + \sigma^4)$, from a variance of each term of )"
                       R"($\sigma^2 \mu_i^2 + \sigma^4$.)",
          .setup =
              "For widths $d$ that double, many pairs of random vectors with elements of mean $\\mu$ and deviation $\\sigma$ are drawn, "
              "and mean and variance of their dot products are measured.",
          .expected = Verdict::corrected,
          .prepare = prepared(declare_variance, run_variance)};
}

}  // namespace heed::lab
