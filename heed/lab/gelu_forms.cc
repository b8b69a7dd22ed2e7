// L26: the GELU with the error function and its form with tanh (Hendrycks and Gimpel 2016): how far apart they are.
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
  settings.add("reach", options.reach, "x goes from minus this to this", {.least = 4, .most = 20});
  settings.add("points", options.points, "where both are computed", {.least = 101, .most = 1e8});
  settings.add("width", options.width, "of tokens before a feed-forward layer", {.least = 1, .most = 8192});
  settings.add("tokens", options.tokens, "that go through it", {.least = 1, .most = 1e6});
  settings.add("seed", options.seed, "of tokens and weights");
}

// The plain formulas in double.
double gelu_by_erf(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }
double gelu_by_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }
double gelu_difference(double x) { return gelu_by_tanh(x) - gelu_by_erf(x); }

// Where |f| is largest between two places round its one hill there, by golden sections.
template <class F>
double top_of_hill(F f, double low, double high) {
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
  Tensor x = Tensor::from(at, {std::ssize(at)});
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

size_t place_of_largest(const std::vector<double>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }) -
                             values.begin());
}

// Every so many, for drawing.
std::vector<double> thinned_curve(const std::vector<double>& values, size_t most = 601) {
  const size_t step = std::max<size_t>(1, (values.size() - 1) / (most - 1));
  std::vector<double> out;
  for (size_t i = 0; i < values.size(); i += step) out.push_back(values[i]);
  return out;
}

Report run_gelu(const GeluOptions& options, const Say&) {
  const std::vector<double> places = steps(-options.reach, options.reach, static_cast<int>(options.points));
  const std::vector<float> at(places.begin(), places.end());
  const std::vector<double> x(at.begin(), at.end());
  const GeluCurve exact = gelu_curve([](const Tensor& t) { return gelu(t); }, at);
  const GeluCurve form = gelu_curve([](const Tensor& t) { return gelu_tanh(t); }, at);
  const GeluCurve rough = gelu_curve([](const Tensor& t) { return t * sigmoid(t * 1.702f); }, at);
  const std::vector<double> apart = curve_differences(form.y, exact.y), rough_apart = curve_differences(rough.y, exact.y);
  const std::vector<double> slopes_apart = curve_differences(form.slope, exact.slope);

  double off_erf = 0, off_tanh = 0, uneven = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    off_erf = std::max(off_erf, std::abs(exact.y[i] - gelu_by_erf(x[i])));
    off_tanh = std::max(off_tanh, std::abs(form.y[i] - gelu_by_tanh(x[i])));
    uneven = std::max(uneven, std::abs(apart[i] - apart[apart.size() - 1 - i]));
  }
  const double top = top_of_hill(gelu_difference, 2, 3.5), dip = top_of_hill(gelu_difference, 1, 1.8);
  const size_t found = place_of_largest(apart), lowest = static_cast<size_t>(std::min_element(apart.begin(), apart.end()) - apart.begin());
  const double rounding = 2.4e-7 * static_cast<double>(options.reach);  // two of the largest output's
  const double step = 2 * static_cast<double>(options.reach) / static_cast<double>(options.points - 1);

  // What a feed-forward layer of a transformer makes of it: two linear layers with one or the other between them.
  Rng rng(options.seed);
  const int64_t D = options.width;
  const float deviation = 1 / std::sqrt(static_cast<float>(D));
  const Tensor tokens = random_normal({options.tokens, D}, 0, 1, rng), up = random_normal({4 * D, D}, 0, deviation, rng);
  const Tensor down = random_normal({D, 4 * D}, 0, deviation / 2, rng), zero = Tensor::zeros({4 * D});
  const Tensor with_erf = linear(linear(tokens, up, zero, Activation::gelu), down);
  const Tensor with_tanh = linear(linear(tokens, up, zero, Activation::gelu_tanh), down);
  const double shift = std::sqrt(mean((with_tanh - with_erf) * (with_tanh - with_erf)).item() / mean(with_erf * with_erf).item());

  Report report;
  report.statement =
      "The form with tanh is never further than 4.73e-4 from the exact GELU: above it round |x| = 2.70, below it round |x| = 1.36, the "
      "same on both sides of 0. A feed-forward layer changes by less than a thousandth of its size.";
  report.measured = {
      at_most("distance of heed's gelu from x Φ(x) in double", rounding, off_erf),
      at_most("distance of heed's gelu_tanh from its formula in double", rounding, off_tanh),
      close_to("largest difference of the two", std::abs(gelu_difference(top)), std::abs(apart[found]), 0.01),
      equal_to("|x| where it is", top, std::abs(x[found]), std::max(0.05, 2 * step)),
      close_to("how far the tanh form falls below", -gelu_difference(dip), -apart[lowest], 0.01),
      at_most("difference at x against that at -x", rounding, uneven),
      at_most("largest difference of the slopes", 9e-4, std::abs(slopes_apart[place_of_largest(slopes_apart)])),
      at_most("change of a feed-forward layer's outputs, as a share", 1e-3, shift),
      at_least("x σ(1.702 x): how many times further away", 40, std::abs(rough_apart[place_of_largest(rough_apart)] / apart[found])),
  };
  Table table{.title = "Where they differ", .columns = {"x", "x Φ(x)", "tanh form", "difference", "difference of slopes"}};
  for (size_t i = 0; i < 13; ++i) {
    const size_t place = i * (x.size() - 1) / 12;
    table.rows.push_back({x[place], exact.y[place], form.y[place], apart[place], slopes_apart[place]});
  }
  report.tables.push_back(std::move(table));

  const std::vector<double> across = thinned_curve(x);
  const std::vector<double> ramp = thinned_curve(values_of(relu(Tensor::from(at, {std::ssize(at)}))));
  report.figures.push_back(figure("The two curves", "They lie on each other; ReLU is what both bend round.",
                                  Plot{.body = Lines{.across = {"x", false, -4.0, 4.0},
                                                     .up = {"", false, -0.5, 4.0},
                                                     .series = {{"x Φ(x)", across, thinned_curve(exact.y)},
                                                                {"tanh form", across, thinned_curve(form.y), Mark::dashed},
                                                                {"ReLU", across, ramp}}}}));
  report.figures.push_back(figure("Their difference", "Tanh form less exact, and the same of the slopes, which learning feels.",
                                  Plot{.body = Lines{.across = {"x"},
                                                     .up = {"difference"},
                                                     .series = {{"of values", across, thinned_curve(apart)},
                                                                {"of slopes", across, thinned_curve(slopes_apart), Mark::dashed}}}}));
  report.figures.push_back(figure("Against the shorter form", "$x \\, \\sigma(1.702 x)$ is the other form in use.",
                                  Plot{.body = Lines{.across = {"x"},
                                                     .up = {"less exact"},
                                                     .series = {{"tanh form", across, thinned_curve(apart)},
                                                                {"x σ(1.702 x)", across, thinned_curve(rough_apart), Mark::dashed}}}}));
  return report;
}

}  // namespace

Experiment gelu_forms() {
  return {.number = "L26",
          .name = "gelu-forms",
          .topic = Topic::layers,
          .title = "GELU: the error function and the tanh",
          .claim = "The form of the GELU with tanh is within $4.74 \\cdot 10^{-4}$ of the exact one everywhere.",
          .formula = R"(x \, \Phi(x) = \frac{x}{2} \left(1 + \erf\frac{x}{\sqrt{2}}\right) \approx )"
                     R"(\frac{x}{2} \left(1 + \tanh\left(\sqrt{\frac{2}{\pi}} \, (x + 0.044715 \, x^3)\right)\right))",
          .prepare = prepared(declare_gelu, run_gelu)};
}

}  // namespace heed::lab
