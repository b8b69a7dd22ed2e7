// L26: the exact GELU and its tanh approximation (Hendrycks and Gimpel 2016): how far apart they are.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct GeluOptions {
  float reach = 6;
  int64_t points = 24001, width = 256, tokens = 64;
  uint64_t seed = 1;
};

void declare_gelu(Settings& settings, GeluOptions& options, Size size) {
  if (size == Size::full) options.points = 2400001, options.width = 1024;
  settings.add("reach", options.reach, "range of x: from minus this to this", {.least = 4, .most = 20});
  settings.add("points", options.points, "number of points", {.least = 101, .most = 1e8});
  settings.add("width", options.width, "of tokens before a feed-forward layer", {.least = 1, .most = 8192});
  settings.add("tokens", options.tokens, "number of tokens", {.least = 1, .most = 1e6});
  settings.add("seed", options.seed, "of tokens and weights");
}

// Reference formulas in double.
double gelu_by_erf(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }
double gelu_by_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }
double gelu_difference(double x) { return gelu_by_tanh(x) - gelu_by_erf(x); }

// The maximum of |f|, which has one peak in [low, high], by golden section search.
template <class F>
double peak_of(F f, double low, double high) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  while (high - low > 1e-9) {
    const double left = high - golden * (high - low), right = low + golden * (high - low);
    (std::abs(f(left)) < std::abs(f(right)) ? low : high) = std::abs(f(left)) < std::abs(f(right)) ? left : right;
  }
  return (low + high) / 2;
}

struct GeluCurve {
  std::vector<double> y, slope;
};
template <class F>
GeluCurve gelu_curve(F function, const std::vector<float>& at) {
  Tensor x = Tensor::from(at, {std::ssize(at)}, kCpu);
  x.require_grad();
  const Tensor y = function(x);
  backward(sum(y));
  return {values_of(y), values_of(x.grad())};
}

std::vector<double> curve_differences(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i] - b[i]);
  return out;
}

size_t index_of_largest(const std::vector<double>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }) -
                             values.begin());
}

// Subsampled for drawing.
std::vector<double> thinned_curve(const std::vector<double>& values, size_t most = 601) {
  const size_t step = std::max<size_t>(1, (values.size() - 1) / (most - 1));
  std::vector<double> out;
  for (size_t i = 0; i < values.size(); i += step) out.push_back(values[i]);
  return out;
}

Report run_gelu(const GeluOptions& options, const ProgressCallback&) {
  const std::vector<double> grid = steps(-options.reach, options.reach, static_cast<int>(options.points));
  const std::vector<float> at(grid.begin(), grid.end());
  const std::vector<double> x(at.begin(), at.end());
  const GeluCurve exact = gelu_curve([](const Tensor& t) { return gelu(t); }, at);
  const GeluCurve approximate = gelu_curve([](const Tensor& t) { return gelu_tanh(t); }, at);
  const GeluCurve sigmoid_form = gelu_curve([](const Tensor& t) { return t * sigmoid(t * 1.702f); }, at);
  const std::vector<double> difference = curve_differences(approximate.y, exact.y),
                            sigmoid_difference = curve_differences(sigmoid_form.y, exact.y);
  const std::vector<double> slope_difference = curve_differences(approximate.slope, exact.slope);

  double erf_error = 0, tanh_error = 0, asymmetry = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    erf_error = std::max(erf_error, std::abs(exact.y[i] - gelu_by_erf(x[i])));
    tanh_error = std::max(tanh_error, std::abs(approximate.y[i] - gelu_by_tanh(x[i])));
    asymmetry = std::max(asymmetry, std::abs(difference[i] - difference[difference.size() - 1 - i]));
  }
  const double peak = peak_of(gelu_difference, 2, 3.5), dip = peak_of(gelu_difference, 1, 1.8);
  const size_t found = index_of_largest(difference),
               lowest = static_cast<size_t>(std::min_element(difference.begin(), difference.end()) - difference.begin());
  const double rounding = 2.4e-7 * static_cast<double>(options.reach);  // two units in the last place of the largest output
  const double step = 2 * static_cast<double>(options.reach) / static_cast<double>(options.points - 1);

  // Effect on a feed-forward layer: two linear layers with either activation between them.
  Rng rng(options.seed);
  const int64_t D = options.width;
  const float deviation = 1 / std::sqrt(static_cast<float>(D));
  const Tensor tokens = random_normal({options.tokens, D}, 0, 1, rng, kCpu), up = random_normal({4 * D, D}, 0, deviation, rng, kCpu);
  const Tensor down = random_normal({D, 4 * D}, 0, deviation / 2, rng, kCpu), zero = Tensor::zeros({4 * D}, kCpu);
  const Tensor with_erf = linear(linear(tokens, up, zero, Activation::gelu), down);
  const Tensor with_tanh = linear(linear(tokens, up, zero, Activation::gelu_tanh), down);
  const double shift = std::sqrt(mean((with_tanh - with_erf) * (with_tanh - with_erf)).item() / mean(with_erf * with_erf).item());

  Report report;
  report.statement =
      "The tanh form differs from the exact GELU by at most 4.73e-4: it is above it around |x| = 2.70 and below it around |x| = 1.36, "
      "symmetrically in x. The output of a feed-forward layer changes by less than a thousandth of its size.";
  report.measured = {
      at_most("distance of heed's gelu from x Φ(x) in double", rounding, erf_error),
      at_most("distance of heed's gelu_tanh from its formula in double", rounding, tanh_error),
      close_to("largest difference of the two", std::abs(gelu_difference(peak)), std::abs(difference[found]), 0.01),
      equal_to("absolute value of x at the largest difference", peak, std::abs(x[found]), std::max(0.05, 2 * step)),
      close_to("largest difference below the exact form", -gelu_difference(dip), -difference[lowest], 0.01),
      at_most("difference at x minus difference at -x", rounding, asymmetry),
      at_most("largest difference of the slopes", 9e-4, std::abs(slope_difference[index_of_largest(slope_difference)])),
      at_most("relative change of the outputs of a feed-forward layer", 1e-3, shift),
      at_least("x σ(1.702 x): error relative to that of the tanh form", 40,
               std::abs(sigmoid_difference[index_of_largest(sigmoid_difference)] / difference[found])),
  };
  Table table{.title = "Where they differ", .columns = {"x", "x Φ(x)", "tanh form", "difference", "difference of slopes"}};
  for (size_t i = 0; i < 13; ++i) {
    const size_t index = i * (x.size() - 1) / 12;
    table.rows.push_back({x[index], exact.y[index], approximate.y[index], difference[index], slope_difference[index]});
  }
  report.tables.push_back(std::move(table));

  const std::vector<double> across = thinned_curve(x);
  const std::vector<double> ramp = thinned_curve(values_of(relu(Tensor::from(at, {std::ssize(at)}, kCpu))));
  report.figures.push_back(figure("The two curves", "They coincide at this scale; both approach ReLU.",
                                  Plot{.body = Lines{.across = {"x", false, -4.0, 4.0},
                                                     .up = {"", false, -0.5, 4.0},
                                                     .series = {{"x Φ(x)", across, thinned_curve(exact.y)},
                                                                {"tanh form", across, thinned_curve(approximate.y), Mark::dashed},
                                                                {"ReLU", across, ramp}}}}));
  report.figures.push_back(figure("Their difference", "Tanh form minus exact form, for values and for slopes, which enter gradients.",
                                  Plot{.body = Lines{.across = {"x"},
                                                     .up = {"difference"},
                                                     .series = {{"of values", across, thinned_curve(difference)},
                                                                {"of slopes", across, thinned_curve(slope_difference), Mark::dashed}}}}));
  report.figures.push_back(
      figure("Against the sigmoid form", "$x \\, \\sigma(1.702 x)$ is the other approximation in use.",
             Plot{.body = Lines{.across = {"x"},
                                .up = {"minus exact"},
                                .series = {{"tanh form", across, thinned_curve(difference)},
                                           {"x σ(1.702 x)", across, thinned_curve(sigmoid_difference), Mark::dashed}}}}));
  return report;
}

}  // namespace

Experiment gelu_forms() {
  return {.number = "L26",
          .name = "gelu-forms",
          .topic = Topic::layers,
          .title = "GELU: the error function and the tanh",
          .claim = "The tanh approximation of the GELU is within $4.74 \\cdot 10^{-4}$ of the exact one everywhere.",
          .formula = R"(x \, \Phi(x) = \frac{x}{2} \left(1 + \erf\frac{x}{\sqrt{2}}\right) \approx )"
                     R"(\frac{x}{2} \left(1 + \tanh\left(\sqrt{\frac{2}{\pi}} \, (x + 0.044715 \, x^3)\right)\right))",
          .setup =
              "Both forms, and $x \\, \\sigma(1.702 x)$, are evaluated on a fine grid and compared with $x \\, \\Phi(x)$ in double "
              "precision. Then one replaces the other in a random feed-forward layer.",
          .prepare = prepared(declare_gelu, run_gelu)};
}

}  // namespace heed::lab
