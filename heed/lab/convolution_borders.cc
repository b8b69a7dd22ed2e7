// L21: what the attention layer of a convolution computes where taps reach beyond the image.
#include <algorithm>
#include <cmath>
#include <span>

#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct BorderOptions {
  int64_t side = 12, channels = 2, kernels = 3, dilation = 1;
  float alpha = 40;
  uint64_t seed = 1;
};

void declare_borders(Settings& settings, BorderOptions& options, Size size) {
  if (size == Size::full) options.side = 32, options.channels = 16, options.kernels = 5;
  settings.add("side", options.side, "of the random image", {.least = 4, .most = 128});
  settings.add("channels", options.channels, "of the image", {.least = 1, .most = 256});
  settings.add("kernels", options.kernels, "number of kernel sizes: 3 x 3, 5 x 5, ...", {.least = 2, .most = 7});
  settings.add("dilation", options.dilation, "of all kernels", {.least = 1, .most = 16});
  settings.add("alpha", options.alpha, "sharpness of the heads", {.least = 0, .most = 1e5});
  settings.add("seed", options.seed, "of image and weights");
}

std::vector<double> exponentials(std::span<const double> values) {
  std::vector<double> out;
  for (const double value : values) out.push_back(std::exp(value));
  return out;
}

// max over channels of |a - b| at every pixel. (1, O, Y, X) -> (Y, X)
HeatMap error_map(const Tensor& a, const Tensor& b, double most) {
  const Tensor distance = a - b;
  HeatMap map = heat_map(reshape(heed::max(relu(distance) + relu(distance * -1.0f), {1}), {a.size(2), a.size(3)}));
  map.least = 0, map.most = most;
  return map;
}

// The error of a 3 x 3 kernel away from the border, by alpha. The four neighbours of a tap have a weight of e^-alpha each.
void add_blur(Report& report, const BorderOptions& options, const Tensor& x, Rng& rng) {
  const Convolution convolution = random_convolution(options.channels, 4, 3, rng);
  Series series{.name = "measured, 3 × 3", .mark = Mark::both}, predicted{.name = "4 e^-α", .mark = Mark::dashed};
  for (const double alpha : {0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0}) {
    const LayerError error = layer_error(convolution, {.alpha = static_cast<float>(alpha)}, x);
    series.x.push_back(alpha), series.y.push_back(std::max(error.inside, 1e-9));
    predicted.x.push_back(alpha), predicted.y.push_back(4 * std::exp(-alpha));
  }
  const Power decay = fitted_power(exponentials(std::span(series.x).subspan(2, 5)), std::span(series.y).subspan(2, 5));
  report.measured.push_back(equal_to("error inside, α = 2 to 8: exponent of e^α", -1, decay.exponent, 0.15));
  report.figures.push_back(figure("How sharp the heads must be", "Largest error away from the border, relative to the largest output.",
                                  Plot{.body = Lines{.across = {"α"}, .up = {"error", true}, .series = {series, predicted}}}));
}

Report run_borders(const BorderOptions& options, const ProgressCallback& progress) {
  const NoGrad no_grad;
  Rng rng(options.seed);
  const Tensor x = random_normal({1, options.channels, options.side, options.side}, 0, 1, rng, kCpu);
  Report report;
  report.statement =
      "Where a tap reaches beyond the image its head attends to the nearest edge pixel: the layer equals the convolution with replicated "
      "edges. Zero padding needs zeros around the input, and a single ring of them is enough for every K: heads that point beyond it "
      "attend to its zeros. Padding by ⌊K/2⌋ works as well, but is not needed.";
  Table table{.title = "Errors, relative to the largest output",
              .columns = {"kernel", "padding of the convolution", "rings of zeros", "inside", "at the border"}};
  Lines rings{.across = {"rings of zeros around the input"}, .up = {"largest error / largest output", true}};
  Figure film{.title = "Where the layer differs from a convolution",
              .caption =
                  "Error at every pixel, K = 5: against replicated edges, without zeros around the input; and against zero padding, with "
                  "the number of rings set by the slider.",
              .parameter = "rings of zeros"};
  double blur = 0;  // largest error inside: above rounding, the heads are not sharp
  for (int64_t i = 0; i < options.kernels; ++i) {
    const int64_t K = 3 + 2 * i;
    const std::string name = std::to_string(K) + " × " + std::to_string(K);
    progress(name);
    Convolution convolution = random_convolution(options.channels, 4, K, rng);
    convolution.dilation = options.dilation;
    const int64_t reach = reach_of(convolution).top;
    const auto row = [&](Border border, double count, LayerError error) {
      table.rows.push_back({name, name_of(border), count, error.inside, error.border});
    };
    const LayerError replicated = layer_error(convolution, {.alpha = options.alpha}, x);
    row(Border::replicate, 0, replicated);
    blur = std::max(blur, replicated.inside);
    if (replicated.inside > kRoundingError) continue;  // not a convolution even away from the border: nothing to say about the border
    report.measured.push_back(at_most(name + ", replicated edges: error inside", kRoundingError, replicated.inside));
    report.measured.push_back(at_most(name + ", replicated edges: error at the border", kRoundingError, replicated.border));
    double enough = NAN;  // fewest rings with which the layer is the convolution
    Series series{.name = name, .mark = Mark::both};
    for (int64_t count = 0; count <= std::max<int64_t>(reach, 1); ++count) {
      const LayerChoice choice{.alpha = options.alpha, .border = Border::zero, .rings = count};
      const LayerError error = layer_error(convolution, choice, x);
      row(Border::zero, static_cast<double>(count), error);
      series.x.push_back(static_cast<double>(count)), series.y.push_back(std::max(error.worst(), 1e-9));
      if (count == 0)
        report.measured.push_back(
            at_least(name + ", zero padding, no zeros around the input: error at the border", kAnotherFunction, error.border));
      if (count >= 1)
        report.measured.push_back(at_most(name + ", zero padding, " + std::to_string(count) + (count == 1 ? " ring" : " rings") + ": error",
                                          kRoundingError, error.worst()));
      if (std::isnan(enough) && error.worst() <= kRoundingError) enough = static_cast<double>(count);
      if (K != 5) continue;
      const Tensor zero = convolved(convolution, x, Border::zero), edges = convolved(convolution, x, Border::replicate);
      const double most = largest(zero - edges);
      film.frames.push_back(
          {std::to_string(count),
           {{"replicated edges",
             error_map(attended(attention_layer(convolution, {.alpha = options.alpha}, options.side, options.side), x), edges, most)},
            {"zero padding", error_map(attended(attention_layer(convolution, choice, options.side, options.side), x), zero, most)}}});
    }
    rings.series.push_back(std::move(series));
    if (reach > 1)
      report.measured.push_back(contradicts(name + ": required rings of zeros", static_cast<double>(reach), enough));
    else
      report.measured.push_back(equal_to(name + ": required rings of zeros", 1, enough));
  }
  report.tables.push_back(std::move(table));
  const bool sharp = blur <= kRoundingError;
  add_blur(report, options, x, rng);
  if (!sharp)
    report.undecided =
        "At α = " + setting_text(options.alpha) +
        " the heads still blur: away from the border, where the border does not matter, the layer differs from the "
        "convolution by " +
        number_text(blur) +
        " of its largest output. What happens at the border is a statement about sharp heads: from α = " + setting_text(kSharpAlpha) +
        " on they are sharp to rounding.";
  if (!sharp) return report;
  report.figures.push_back(std::move(film));
  report.figures.push_back(figure("One ring of zeros is enough",
                                  "Error of the layer against the convolution with zero padding; zero is drawn at 1e-9.",
                                  Plot{.body = std::move(rings)}));
  return report;
}

}  // namespace

Experiment convolution_borders() {
  return {
      .number = "L21",
      .name = "convolution-borders",
      .topic = Topic::convolution,
      .title = "Attention beyond the edge of the image",
      .claim =
          "The attention layer of a convolution replicates the edges of the image; for zero padding the input must be surrounded by zeros.",
      .formula = R"(\lim_{\alpha \to \infty} a_{qk} = \mathbf{1}[k = \min(\max(q - \Delta, 0), (Y - 1, X - 1))])",
      .published = R"(For zero padding the input has to be padded by at least $\lfloor K / 2 \rfloor$ rings of zeros.)",
      .setup =
          "Random kernels of growing size are converted to attention layers as in L19. Their outputs are compared with convolutions that "
          "replicate the edges and with convolutions that pad with zeros, with rings of zeros around the input of the layer. Errors are "
          "relative to the largest output.",
      .expected = Verdict::corrected,
      .prepare = prepared(declare_borders, run_borders)};
}

}  // namespace heed::lab
