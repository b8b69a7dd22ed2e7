// L5: self-attention as a linear layer applied to each token, which is a 1x1 convolution.
#include <algorithm>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/images.h"
#include "heed/lab/measure.h"
#include "heed/nn/multi_head.h"

namespace heed::lab {
namespace {

struct RunningOptions {
  int64_t side = 32, channels = 12, outputs = 20;
  std::string image = {};
  uint64_t seed = 1;
};

void declare_running(Settings& settings, RunningOptions& options, Size) {
  settings.add("side", options.side, "of the grid of tokens and of the image, an even number", {.least = 4, .most = 64});
  settings.add("channels", options.channels, "of the random tokens", {.least = 1, .most = 512});
  settings.add("outputs", options.outputs, "output channels", {.least = 1, .most = 512});
  settings.add("image", options.image, "a PNG or JPEG file for the figure; empty: a synthetic one");
  settings.add("seed", options.seed, "of tokens and weights");
}

// A layer whose map depends on positions alone, and the convolution that it should equal.
struct RunningLayer {
  int64_t side;
  MultiHeadAttention layer = {};
  Tensor kernel = {}, bias = {};  // (O, I, 1, 1), (O)

  RunningLayer(int64_t side_of_grid, Linear value, Linear output) : side(side_of_grid) {
    kernel = reshape(matmul(output.weight, value.weight), {output.outputs(), value.inputs(), 1, 1});
    bias = output(value.bias);
    layer.value = std::move(value), layer.output = std::move(output);
  }

  // -alpha |offset|^2 on the grid: alpha = 0 gives equal weights, infinity the identity.
  Term gaussian(double alpha) const {
    return Gaussian2d{.alpha = Tensor::full({1}, alpha, kCpu), .center = Tensor::zeros({1, 2}, kCpu), .width = side};
  }
  static Tensor tokens(const Tensor& image) {  // (1, C, Y, X) -> (1, Y X, C)
    return transpose(reshape(image, {1, image.size(1), -1}), 1, 2);
  }
  Tensor with(const Term& term, const Tensor& x) const { return layer(tokens(x), {.terms = {term}}); }  // x: (1, I, Y, X) -> (1, Y X, O)
  Tensor convolution(const Tensor& x) const { return tokens(conv2d(x, kernel, bias)); }
  Tensor linear_layer(const Tensor& x) const { return layer.output(layer.value(tokens(x))); }
  Tensor as_image(const Tensor& y) const { return reshape(transpose(y, 1, 2), {y.size(2), side, side}); }  // y: (1, Y X, O)
};

Linear random_linear(int64_t outputs, int64_t inputs, Rng& rng) {
  Linear out;
  out.weight = random_normal({outputs, inputs}, 0, 1 / std::sqrt(static_cast<float>(inputs)), rng, kCpu);
  out.bias = random_normal({outputs}, 0, 0.5f, rng, kCpu);
  return out;
}
Linear linear_of(const std::vector<float>& weight) {  // 3 x 3, of colours
  Linear out;
  out.weight = Tensor::from(weight, {3, 3}, kCpu), out.bias = Tensor::zeros({3}, kCpu);
  return out;
}

// RMS distance from the convolution, relative to the spread of its tokens around their mean.
double running_distance(const Tensor& y, const Tensor& wanted) {
  const Tensor away = y - wanted, spread = wanted - mean(wanted, {1}, true);
  return std::sqrt(static_cast<double>(mean(away * away).item()) / static_cast<double>(mean(spread * spread).item()));
}

void draw_running(Report& report, const RunningOptions& options, const RunningLayer& random, const Tensor& x) {
  const std::vector<double> alphas = powers(1e-3, 30, 25);
  std::vector<double> distances;
  const Tensor wanted = random.convolution(x);
  for (double alpha : alphas) distances.push_back(running_distance(random.with(random.gaussian(alpha), x), wanted));
  report.figures.push_back(figure(
      "From the mean to the 1x1 convolution",
      "Distance of the output from the convolution, relative to the spread of its tokens: at 1 all differences between tokens are lost.",
      Plot{.body = Lines{.across = {"α: how narrow the map is", true},
                         .up = {"distance", true, 1e-7},
                         .series = {{"attention", alphas, distances, Mark::both}, {"equal weights", {1e-3, 30}, {1, 1}, Mark::dashed}}}}));
  const Tensor colours = reshape(colours_of(image_for(options.image, random.side, options.seed)), {1, 3, random.side, random.side});
  const RunningLayer permuting(random.side, linear_of({0, 1, 0, 0, 0, 1, 1, 0, 0}), linear_of({1, 0, 0, 0, 1, 0, 0, 0, 1}));
  const auto shown = [&](const Tensor& y) { return image_of(permuting.as_image(y)); };
  Figure film{.title = "On an image",
              .caption =
                  "$W_v$ permutes the colour channels: red takes the value of green, green of blue, and blue of red. At α = 0 every pixel "
                  "gets the same mean, with a narrow map its own value.",
              .parameter = "α"};
  const Image before = image_of(reshape(colours, {3, random.side, random.side}));
  for (const double alpha : {0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0})
    film.frames.push_back({setting_text(alpha),
                           {Plot{"tokens", before}, Plot{"attention", shown(permuting.with(permuting.gaussian(alpha), colours))},
                            Plot{"1x1 convolution", shown(permuting.convolution(colours))}}});
  report.figures.push_back(std::move(film));
}

Report run_running(const RunningOptions& options, const ProgressCallback&) {
  check<UsageError>(options.side % 2 == 0, "lab: side is ", options.side, ", expected an even number");
  Rng rng(options.seed);
  const int64_t inner = std::max(options.channels, options.outputs);  // at least as wide as input and output
  const Linear value = random_linear(inner, options.channels, rng);
  const RunningLayer random(options.side, value, random_linear(options.outputs, inner, rng));
  const Tensor x = random_normal({1, options.channels, options.side, options.side}, 0, 1, rng, kCpu);
  const Tensor wanted = random.convolution(x), equal = random.with(random.gaussian(0), x);
  const Tensor mean_token = mean(RunningLayer::tokens(x), {1}, true);
  const int64_t N = options.side * options.side;
  const Tensor mean_out = expand(random.layer.output(random.layer.value(mean_token)), wanted.shape());
  const Tensor nothing = Tensor::zeros({1, 1, N, 1}, kCpu);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < N; i += 1 + N / 1024) rows.push_back(i);
  const std::vector<double> weights =
      values_of(attention_probabilities(nothing, nothing, {.beta = 0.0f, .terms = {random.gaussian(100)}}, {}, rows));
  double own = 1;
  for (size_t i = 0; i < rows.size(); ++i) own = std::min(own, weights[i * static_cast<size_t>(N) + static_cast<size_t>(rows[i])]);

  Report report;
  report.statement =
      "If the map is the identity, each token goes through $W_o W_v$ alone: a linear layer applied to each token, the 1x1 convolution with "
      "that kernel. With equal weights every token gets the same mean, so that all differences between tokens are lost.";
  report.measured = {
      equal_to("narrow map: smallest weight on the diagonal", 1, own, 1e-6),
      at_most("narrow map: distance from the 1x1 convolution", 1e-5, running_distance(random.with(random.gaussian(100), x), wanted)),
      at_most("diagonal mask: distance from the 1x1 convolution", 1e-5, running_distance(random.with(Window{}, x), wanted)),
      at_most("linear layer, token by token: distance from the 1x1 convolution", 1e-5, running_distance(random.linear_layer(x), wanted)),
      at_most("equal weights: distance of every token from the output of the mean", 1e-4, largest_difference(equal, mean_out)),
      equal_to("equal weights: distance from the 1x1 convolution", 1, running_distance(equal, wanted), 1e-3),
      contradicts("equal weights: distance from that convolution", 0, running_distance(equal, wanted)),
  };
  draw_running(report, options, random, x);
  return report;
}

}  // namespace

Experiment running_linear_layer() {
  return {
      .number = "L5",
      .name = "running-linear-layer",
      .topic = Topic::expression,
      .title = "A linear layer applied to each token",
      .claim = "Self-attention whose map is the identity is a linear layer applied to each token, that is, a 1x1 convolution.",
      .formula = R"(a_{ij} = 1[i = j] \quad \Rightarrow \quad h_i = W_o W_v z_i + b = (z \ast K)_i, \quad K = W_o W_v)",
      .published = "Self-attention acts as a running linear layer when all attention weights are equal.",
      .setup =
          "One layer with random $W_v$ and $W_o$ runs on a random image with different maps: a Gaussian from constant to very narrow, and "
          "a diagonal mask. Its output is compared with a 1x1 convolution with the kernel $W_o W_v$, relative to the spread of the tokens.",
      .expected = Verdict::corrected,
      .prepare = prepared(declare_running, run_running)};
}

}  // namespace heed::lab
