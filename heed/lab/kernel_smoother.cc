// L9: attention is kernel regression (Nadaraya 1964, Watson 1964): it smooths a noisy curve, and with patches as queries and keys it is the
// non-local means of Buades et al. 2005.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "heed/attention/attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/images.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct SmootherOptions {
  int64_t points = 150, side = 64, radius = 1, window = 0;
  float bandwidth = 0.04f, curve_noise = 0.3f, noise = 0.1f, strength = 0.85f;
  std::string image = {};
  uint64_t seed = 1;
};

void declare_smoother(Settings& settings, SmootherOptions& options, Size size) {
  if (size == Size::full) options.side = 96;
  settings.heading("The curve");
  settings.add("points", options.points, "noisy points", {.least = 20, .most = 10000});
  settings.add("bandwidth", options.bandwidth, "width of the kernel; the curve is 1 wide", {.least = 0.01, .most = 1});
  settings.add("curve_noise", options.curve_noise, "standard deviation of the points from the curve", {.least = 0.01, .most = 3});
  settings.heading("The image");
  settings.add("image", options.image, "a PNG or JPEG file; empty: a synthetic one");
  settings.add("side", options.side, "pixels per side, an even number", {.least = 16, .most = 128});
  settings.add("noise", options.noise, "standard deviation of the noise; white is 1", {.least = 0.02, .most = 0.5});
  settings.add("strength", options.strength, "width of the kernel between patches, in units of the noise", {.least = 0.3, .most = 5});
  settings.add("radius", options.radius, "of a patch: 1 is 3x3 pixels", {.least = 0, .most = 4});
  settings.add("window", options.window, "search window for patches, in pixels; 0: the whole image", {.least = 0, .most = 128});
  settings.add("seed", options.seed, "of points, noise and the image");
}

// Gaussian kernels as scores: |x - y|^2 = |x|^2 - 2 (x.y - |y|^2 / 2), and a softmax is invariant to |x|^2. One extra feature carries
// |y|^2.
Tensor kernel_queries(const Tensor& x) { return concat({x, Tensor::ones({x.size(0), 1}, kCpu)}, 1); }  // (N, D) -> (N, D + 1)
Tensor kernel_keys(const Tensor& y) { return concat({y, sum(y * y, {1}, true) * -0.5f}, 1); }          // the same
Tensor kernel_regression(const Tensor& x, const Tensor& y, const Tensor& values, double width, const std::vector<Term>& terms = {}) {
  const auto all = [](const Tensor& z) { return reshape(z, {1, 1, z.size(0), z.size(1)}); };
  const auto beta = static_cast<float>(1 / (width * width));
  return reshape(attention(all(kernel_queries(x)), all(kernel_keys(y)), all(values), {.beta = beta, .terms = terms}),
                 {x.size(0), values.size(1)});
}

// Reference: sum of K(x, y_j) v_j / sum of K(x, y_j), for one row x.
template <class Allowed>
std::vector<double> plain_regression(std::span<const double> x, std::span<const double> y, std::span<const double> values, size_t outputs,
                                     double width, const Allowed& allowed) {
  const size_t D = x.size(), count = y.size() / D;
  std::vector<double> out(outputs);
  double weight_sum = 0;
  for (size_t j = 0; j < count; ++j) {
    if (!allowed(j)) continue;
    double square = 0;
    for (size_t d = 0; d < D; ++d) square += (x[d] - y[j * D + d]) * (x[d] - y[j * D + d]);
    const double weight = std::exp(-square / (2 * width * width));
    weight_sum += weight;
    for (size_t c = 0; c < outputs; ++c) out[c] += weight * values[j * outputs + c];
  }
  for (double& each : out) each /= weight_sum;
  return out;
}

double root_mean_square(std::span<const double> a, std::span<const double> b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(out / static_cast<double>(a.size()));
}

double smooth_curve(double x) { return std::sin(3 * std::numbers::pi * x) + 0.5 * std::cos(8 * x * x); }  // x: -0.5 to 0.5

// The error of attention, which must be that of the smoother. A kernel may blur more than it removes noise: then it is above 1.
void add_error_share(Report& report, const std::string& what, double smoother, double attention, double rounding) {
  report.measured.push_back(equal_to(what + ": error as a share of the noise", smoother, attention, rounding));
  if (smoother > 1)
    report.statement +=
        " On the " + what + " this kernel blurs more than it removes noise: its error is " + number_text(attention) + " times the noise.";
}

void smooth_a_curve(Report& report, const SmootherOptions& options, Rng& rng) {
  const int64_t N = options.points;
  const Tensor places = random_uniform({N, 1}, -0.5f, 0.5f, rng, kCpu), noise = random_normal({N, 1}, 0, options.curve_noise, rng, kCpu);
  std::vector<double> x = values_of(places), y = values_of(noise), grid = steps(-0.5, 0.5, 201), truth;
  std::vector<float> y_values, grid_values;
  for (size_t i = 0; i < x.size(); ++i) y[i] += smooth_curve(x[i]), y_values.push_back(static_cast<float>(y[i]));
  for (double& at : grid) grid_values.push_back(static_cast<float>(at)), at = grid_values.back(), truth.push_back(smooth_curve(at));
  const Tensor values = Tensor::from(y_values, {N, 1}, kCpu), queries = Tensor::from(grid_values, {std::ssize(grid), 1}, kCpu);
  y = values_of(values);
  const auto smoothed = [&](double width) { return values_of(kernel_regression(queries, places, values, width)); };

  const std::vector<double> found = smoothed(options.bandwidth);
  std::vector<double> plain;
  double distance = 0;
  for (size_t i = 0; i < grid.size(); ++i) {
    plain.push_back(plain_regression({&grid[i], 1}, x, y, 1, options.bandwidth, [](size_t) { return true; })[0]);
    distance = std::max(distance, std::abs(found[i] - plain[i]));
  }
  // Scores are of size 1 / width^2, and their rounding is an error of the weights.
  const double rounding = 1e-5 + 2e-7 / std::pow(options.bandwidth, 2);
  report.measured.push_back(at_most("curve: distance from the kernel smoother", rounding, distance));
  add_error_share(report, "curve", root_mean_square(plain, truth) / options.curve_noise,
                  root_mean_square(found, truth) / options.curve_noise, rounding / options.curve_noise);

  const std::vector<double> widths = powers(0.01, 0.5, 33);
  std::vector<double> errors;
  for (double width : widths) errors.push_back(root_mean_square(smoothed(width), truth));
  report.figures.push_back(
      figure("Error of the curve by the width of the kernel", "Narrow kernels fit the noise, wide ones smooth out the curve.",
             Plot{.body = Lines{.across = {"width = 1 / √β", true},
                                .up = {"root mean square error", false, 0.0},
                                .series = {{"attention", widths, errors, Mark::both},
                                           {"noise", {0.01, 0.5}, {options.curve_noise, options.curve_noise}, Mark::dashed}}}}));
  Figure film{.title = "A noisy curve through attention",
              .caption = "Queries are positions, keys the positions of the points, values their heights.",
              .parameter = "width = 1 / √β"};
  const auto [low, high] = std::minmax_element(y.begin(), y.end());
  for (const double width : {0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.09, 0.13, 0.2, 0.3, 0.5})
    film.frames.push_back({setting_text(width),
                           {Plot{.body = Lines{.across = {"position"},
                                               .up = {"height", false, *low, *high},
                                               .series = {{"points", x, y, Mark::points},
                                                          {"attention", grid, smoothed(width)},
                                                          {"the curve", grid, truth, Mark::dashed}}}}}});
  report.figures.push_back(std::move(film));
}

// The patch around each pixel, colours centred at 0, edges replicated. colours: (3, Y, X) -> (Y X, 3 (2 r + 1)^2)
Tensor patches_around(const Tensor& colours, int64_t radius) {
  const int64_t Y = colours.size(1), X = colours.size(2), side = 2 * radius + 1;
  const std::vector<float> from = colours.to_vector<float>();
  std::vector<float> out;
  for (int64_t i = 0; i < Y * X; ++i)
    for (int64_t tap = 0; tap < side * side; ++tap)
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t y = std::clamp<int64_t>(i / X + tap / side - radius, 0, Y - 1),
                      x = std::clamp<int64_t>(i % X + tap % side - radius, 0, X - 1);
        out.push_back(from[static_cast<size_t>((c * Y + y) * X + x)] - 0.5f);
      }
  return Tensor::from(out, {Y * X, 3 * side * side}, kCpu);
}

struct NoisyImage {
  int64_t side;
  Tensor clean = {}, noisy = {};  // (3, side, side)
  Tensor patches = {};            // of the noisy one
  std::vector<Term> window = {};

  Tensor pixels(const Tensor& colours) const { return transpose(reshape(colours, {3, side * side}), 0, 1); }  // -> (N, 3)
  Tensor colours(const Tensor& of_pixels) const { return reshape(transpose(of_pixels, 0, 1), {3, side, side}); }
  // Patch distance is a mean over elements, so h is in units of the noise of a colour.
  double width_for(double h) const { return h * std::sqrt(static_cast<double>(patches.size(1)) / 2); }
  Tensor non_local(double h) const { return colours(kernel_regression(patches, patches, pixels(noisy), width_for(h), window)); }
  Tensor blurred(double width) const {  // a kernel between positions: a Gaussian score term
    const Term places =
        Gaussian2d{.alpha = Tensor::full({1}, 1 / (2 * width * width), kCpu), .center = Tensor::zeros({1, 2}, kCpu), .width = side};
    const Tensor nothing = Tensor::zeros({1, 1, side * side, 1}, kCpu);
    const Tensor values = reshape(pixels(noisy), {1, 1, side * side, 3});
    return colours(reshape(attention(nothing, nothing, values, {.beta = 0.0f, .terms = {places}}), {side * side, 3}));
  }
  double error(const Tensor& image) const { return root_mean_square(values_of(image), values_of(clean)); }
};

double decibels(double error) { return -20 * std::log10(error); }

void smooth_an_image(Report& report, const SmootherOptions& options, Rng& rng) {
  const int64_t side = options.side, N = side * side;
  NoisyImage at{.side = side, .clean = colours_of(image_for(options.image, side, options.seed))};
  at.noisy = at.clean + random_normal(at.clean.shape(), 0, options.noise, rng, kCpu);
  at.patches = patches_around(at.noisy, options.radius);
  if (options.window > 0) at.window = {GridWindow{.rows = options.window, .columns = options.window, .width = side}};
  const double h = options.strength * options.noise;
  const Tensor smoothed = at.non_local(h);

  const std::vector<double> patches = values_of(at.patches), values = values_of(at.pixels(at.noisy)),
                            found = values_of(at.pixels(smoothed)), without_noise = values_of(at.pixels(at.clean));
  const auto D = static_cast<size_t>(at.patches.size(1));
  double distance = 0;
  std::vector<double> truth, attended, regressed;
  for (int64_t i = 0; i < N; i += std::max<int64_t>(1, N / 500)) {  // every query compares all patches
    const auto allowed = [&](size_t j) {
      const int64_t key = static_cast<int64_t>(j);
      return options.window == 0 ||
             (std::abs(key / side - i / side) <= options.window && std::abs(key % side - i % side) <= options.window);
    };
    const std::vector<double> plain =
        plain_regression(std::span(patches).subspan(static_cast<size_t>(i) * D, D), patches, values, 3, at.width_for(h), allowed);
    for (size_t c = 0; c < 3; ++c) {
      const size_t place = static_cast<size_t>(i) * 3 + c;
      truth.push_back(without_noise[place]), attended.push_back(found[place]), regressed.push_back(plain[c]);
      distance = std::max(distance, std::abs(plain[c] - found[place]));
    }
  }
  double best_width = 0, best = 1e300;
  for (const double width : steps(0.3, 2, 18))
    if (const double error = at.error(at.blurred(width)); error < best) best = error, best_width = width;
  report.measured.push_back(at_most("image: distance from non-local means", 1e-4, distance));
  const double noise = at.error(at.noisy);
  add_error_share(report, "image", root_mean_square(regressed, truth) / noise, root_mean_square(attended, truth) / noise, 1e-4 / noise);

  Table table{.title = "The image", .columns = {"", "root mean square error", "signal to noise, dB"}};
  const auto add = [&](const std::string& name, double error) { table.rows.push_back({name, error, decibels(error)}); };
  add("noisy", at.error(at.noisy)), add("blurred: a kernel between positions, best width " + setting_text(best_width), best);
  add("non-local means: a kernel between patches", at.error(smoothed));
  report.tables.push_back(std::move(table));
  const Image clean = image_of(at.clean), noisy = image_of(at.noisy);
  const auto add_frame = [&](Figure& film, double value, const std::string& name, const Tensor& output) {
    film.frames.push_back({setting_text(value), {Plot{"noisy", noisy}, Plot{name, image_of(output)}, Plot{"without noise", clean}}});
  };
  Figure patch_film{.title = "A noisy image through attention between patches",
                    .caption =
                        "Queries and keys are patches around the pixels, values their colours: every pixel becomes a weighted mean of "
                        "pixels with similar surroundings.",
                    .parameter = "width of the kernel, in units of the noise"};
  for (const double strength : {0.3, 0.5, 0.6, 0.7, 0.85, 1.0, 1.25, 1.5, 2.5, 5.0})
    add_frame(patch_film, strength, "attention between patches", at.non_local(strength * options.noise));
  Figure place_film{.title = "The same between positions",
                    .caption = "A kernel of positions alone averages nearby pixels: it removes the noise, and the edges with it.",
                    .parameter = "width of the kernel, in pixels"};
  for (const double width : {0.3, 0.5, 0.6, 0.7, 0.8, 1.0, 1.25, 1.5, 2.0, 4.0})
    add_frame(place_film, width, "attention between positions", at.blurred(width));
  report.figures.push_back(std::move(patch_film));
  report.figures.push_back(std::move(place_film));
}

Report run_smoother(const SmootherOptions& options, const ProgressCallback& progress) {
  check<UsageError>(options.side % 2 == 0, "lab: side is ", options.side, ", expected an even number");
  Rng rng(options.seed);
  Report report;
  report.statement =
      "With the squared length of a key as an extra feature, scores are those of a Gaussian kernel, and attention is the kernel smoother: "
      "on a noisy curve it gives the numbers of Nadaraya and Watson, between patches of an image those of non-local means. $\\beta$ is 1 / "
      "width².";
  smooth_a_curve(report, options, rng);
  progress("the image");
  smooth_an_image(report, options, rng);
  return report;
}

}  // namespace

Experiment kernel_smoother() {
  return {
      .number = "L9",
      .name = "kernel-smoother",
      .topic = Topic::expression,
      .title = "Attention is kernel regression",
      .claim = "Attention is the kernel smoother of Nadaraya and Watson; with patches as queries and keys it is non-local means.",
      .formula =
          R"(\hat{f}(x) = \frac{\sum_j K(x, x_j) y_j}{\sum_j K(x, x_j)} = \sum_j \softmax_j(\beta q \cdot k_j) y_j, \quad q = (x, 1), \quad )"
          R"(k_j = (x_j, -\frac{|x_j|^2}{2}), \quad K = e^{-\frac{\beta}{2} |x - x_j|^2})",
      .setup =
          "A noisy curve and a noisy image are smoothed by attention, with positions or patches as queries and keys and the noisy values "
          "as values. Outputs are compared with Nadaraya and Watson's formula and with non-local means, computed in double precision, and "
          "with the values without noise.",
      .prepare = prepared(declare_smoother, run_smoother)};
}

}  // namespace heed::lab
