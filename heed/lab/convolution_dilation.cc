// L22: dilated convolutions as attention: the centres of heads are further apart, nothing else changes.
#include <algorithm>

#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct DilationOptions {
  int64_t kernel = 3, dilations = 4, side = 21, channels = 4;
  float alpha = 40;
  uint64_t seed = 1;
};

void declare_dilation(Settings& settings, DilationOptions& options, Size size) {
  if (size == Size::full) options.side = 49, options.dilations = 8, options.channels = 16;
  settings.add("kernel", options.kernel, "the side of the kernel", {.least = 2, .most = 11});
  settings.add("dilations", options.dilations, "from 1 to this", {.least = 2, .most = 16});
  settings.add("side", options.side, "of the random image", {.least = 5, .most = 128});
  settings.add("channels", options.channels, "of the image", {.least = 1, .most = 256});
  settings.add("alpha", options.alpha, "sharpness of the heads", {.least = 0.1, .most = 1e5});
  settings.add("seed", options.seed, "of image and weights");
}

// Receptive field of the central output: |gradient| of its sum over channels. -> (Y, X)
Tensor receptive_field_gradient(const Model& layer, const Tensor& image) {
  Tensor x = contiguous(image).detach();
  x.require_grad();
  const int64_t y = x.size(2) / 2, at = x.size(3) / 2;
  const Tensor out = attended(layer, x), middle = slice(slice(out, 2, y, y + 1), 3, at, at + 1);
  backward(sum(middle));
  const Tensor g = x.grad();
  return reshape(heed::max(relu(g) + relu(g * -1.0f), {1}), {x.size(2), x.size(3)});
}

struct ReceptiveField {
  int64_t pixels = 0, extent = 0;  // with a nonzero gradient, and the side of their bounding square
};
ReceptiveField receptive_field(const Tensor& gradient) {
  const std::vector<double> values = values_of(gradient);
  const double least = 1e-6 * largest(gradient);
  const int64_t X = gradient.size(1);
  int64_t first = gradient.size(0), last = 0;
  ReceptiveField out;
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    if (values[static_cast<size_t>(i)] <= least) continue;
    ++out.pixels;
    first = std::min(first, i / X), last = std::max(last, i / X);
  }
  out.extent = last - first + 1;
  return out;
}

Report run_dilation(const DilationOptions& options, const ProgressCallback& progress) {
  Rng rng(options.seed);
  const int64_t K = options.kernel, side = options.side;
  check<UsageError>(options.dilations * (K - 1) < side, "side=", side, " is too small for a kernel of ", K, " with dilation ",
                    options.dilations, ", expected ", options.dilations * (K - 1) + 1, " or more");
  const Tensor x = random_normal({1, options.channels, side, side}, 0, 1, rng, kCpu);
  const Convolution plain = random_convolution(options.channels, 2 * options.channels, K, rng);
  Report report;
  report.statement =
      "With the centres at dilation × shift the layer equals the dilated convolution, inside and at replicated edges; α and the output "
      "weights do not change. An output depends on $K^2$ pixels that are a dilation apart.";
  Table table{.title = "Errors at α = " + number_text(options.alpha) + ", relative to the largest output",
              .columns = {"dilation", "inside", "at the border", "receptive field, pixels", "extent", "centres not dilated"}};
  Series inside{.name = "inside", .mark = Mark::both}, border{.name = "at the border", .mark = Mark::both},
      wrong{.name = "centres not dilated", .mark = Mark::both};
  Figure film{.title = "Where the heads look",
              .caption =
                  "Left: the sum of the attention maps of all heads for the central query. Right: the gradient of its output with respect "
                  "to each pixel.",
              .parameter = "dilation"};
  for (int64_t dilation = 1; dilation <= options.dilations; ++dilation) {
    const auto d = static_cast<double>(dilation);
    const std::string which = "dilation " + std::to_string(dilation);
    progress(which);
    Convolution convolution = plain;
    convolution.dilation = dilation;
    const LayerError error = layer_error(convolution, {.alpha = options.alpha}, x);
    const Model layer = attention_layer(convolution, {.alpha = options.alpha}, side, side);
    const Tensor gradient = receptive_field_gradient(layer, x);
    const ReceptiveField field = receptive_field(gradient);
    LayerError undilated;
    {
      const NoGrad no_grad;
      undilated =
          error_between(convolution, Border::replicate, x, attended(attention_layer(plain, {.alpha = options.alpha}, side, side), x),
                        convolved(convolution, x, Border::replicate));
    }
    report.measured.push_back(at_most(which + ": error inside", kRoundingError, error.inside));
    report.measured.push_back(at_most(which + ": error at the replicated border", kRoundingError, error.border));
    report.measured.push_back(
        equal_to(which + ": pixels that the central output depends on", static_cast<double>(K * K), static_cast<double>(field.pixels)));
    report.measured.push_back(equal_to(which + ": their extent", d * static_cast<double>(K - 1) + 1, static_cast<double>(field.extent)));
    if (dilation > 1) report.measured.push_back(at_least(which + ", centres not dilated: error", kAnotherFunction, undilated.inside));
    table.rows.push_back(
        {d, error.inside, error.border, static_cast<double>(field.pixels), static_cast<double>(field.extent), undilated.inside});
    for (Series* each : {&inside, &border, &wrong}) each->x.push_back(d);
    inside.y.push_back(std::max(error.inside, 1e-9)), border.y.push_back(std::max(error.border, 1e-9)),
        wrong.y.push_back(std::max(undilated.inside, 1e-9));
    const Tensor maps =
        head_maps(Tensor::full({K * K}, options.alpha, kCpu), head_centers(convolution), side, side, {side / 2 * side + side / 2});
    film.frames.push_back(
        {std::to_string(dilation),
         {{"weights of all heads", heat_map(reshape(sum(maps, {0}), {side, side}))}, {"gradient of the output", heat_map(gradient)}}});
  }
  report.tables.push_back(std::move(table));
  report.figures.push_back(std::move(film));
  report.figures.push_back(
      figure("Error against dilation", "Heads whose centres are not dilated compute another function. Zero is drawn at 1e-9.",
             Plot{.body = Lines{.across = {"dilation"}, .up = {"error / largest output", true}, .series = {inside, border, wrong}}}));
  excuse_blur(report, options.alpha);
  return report;
}

}  // namespace

Experiment convolution_dilation() {
  return {.number = "L22",
          .name = "dilation",
          .topic = Topic::convolution,
          .title = "Dilated convolutions",
          .claim = "The layer expresses a dilated convolution when the centres of its heads are the dilation times the shifts of the taps.",
          .formula = R"(\Delta_h = -d \, s_h, \quad s_h \in \{-\lfloor K/2 \rfloor, \ldots, \lfloor K/2 \rfloor\}^2)",
          .setup =
              "A random kernel is converted for several dilations. Outputs are compared with the dilated convolution, and the pixels on "
              "which an output depends are counted by its gradient.",
          .prepare = prepared(declare_dilation, run_dilation)};
}

}  // namespace heed::lab
