// L19: converts the weights of a convolution into an attention layer that computes the same (Cordonnier et al. 2020, theorem 1).
#include <algorithm>
#include <cmath>

#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/images.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

constexpr int64_t kShownSide = 40;
constexpr int64_t kEnoughSteps = 60;  // of training, for the loss to fall

struct TheoremOptions {
  std::string weights, name, bias, padding = "replicate", checkpoint, image;
  int64_t dilation = 1, stride = 1, groups = 1, side = 0, channels = 16, points = 24, steps = 60;
  float alpha = 40;
  uint64_t seed = 1;
};

void declare_theorem(Settings& settings, TheoremOptions& options, Size size) {
  if (size == Size::full) options.channels = 64, options.points = 80, options.steps = 600;
  settings.add("weights", options.weights,
               "a convolution to convert: a .safetensors file or a model folder; empty: random and trained ones");
  settings.add("name", options.name, "of the weight in that file, conv1 or conv1.weight; empty: the only one of rank 4");
  settings.add("bias", options.bias, "name of its bias; empty: the one next to the weight, if any");
  settings.add("dilation", options.dilation, "of that convolution", {.least = 1, .most = 64});
  settings.add("stride", options.stride, "of that convolution", {.least = 1, .most = 64});
  settings.add("groups", options.groups, "of that convolution", {.least = 1, .most = 65536});
  settings.add("padding", options.padding, "of the layer in the checkpoint", {.choices = {"zero", "replicate", "none"}});
  settings.add("alpha", options.alpha, "the largest sharpness of the heads, also used for the checkpoint", {.least = 0.1, .most = 1e5});
  settings.add("checkpoint", options.checkpoint, "folder to write the attention layer to, for heed parity and heed inspect");
  settings.add("image", options.image, "a PNG or JPEG file for the figure; empty: a synthetic shape");
  settings.add("side", options.side, "side of the random images on which errors are measured; 0: chosen by kernel size",
               {.least = 0, .most = 256});
  settings.add("channels", options.channels, "of the random convolutions", {.least = 1, .most = 512});
  settings.add("points", options.points, "of the curves over alpha", {.least = 4, .most = 1000});
  settings.add("steps", options.steps, "training steps of the trained convolution", {.least = 1, .most = 100000});
  settings.add("seed", options.seed, "of images and random weights");
}

struct TheoremSubject {
  std::string name;
  Convolution convolution;
};

std::vector<TheoremSubject> subjects_of(const TheoremOptions& options, Report& report) {
  if (!options.weights.empty()) {
    Convolution loaded = convolution_in(options.weights, options.name, options.bias);
    loaded.dilation = options.dilation, loaded.stride = options.stride, loaded.groups = options.groups;
    check<UsageError>(loaded.outputs() % loaded.groups == 0, "groups=", loaded.groups, " do not divide ", loaded.outputs(), " outputs");
    return {{options.name.empty() ? "loaded" : options.name, loaded}};
  }
  Rng rng(options.seed);
  const int64_t C = options.channels;
  TrainedConvolution trained = trained_convolution(5, options.steps, options.seed);
  if (options.steps >= kEnoughSteps)
    report.measured.push_back(at_most("trained 5 × 5: final loss relative to the first", 0.98, trained.last_loss / trained.first_loss));
  trained.convolution.dilation = options.dilation, trained.convolution.stride = options.stride;
  std::vector<TheoremSubject> out;
  for (const int64_t kernel : {3, 5})
    out.push_back({"random " + std::to_string(kernel) + " × " + std::to_string(kernel), random_convolution(C, 2 * C, kernel, rng)});
  out.push_back({"trained 5 × 5", trained.convolution});
  return out;
}

Convolution with_steps(Convolution convolution, int64_t dilation, int64_t stride) {
  convolution.dilation = dilation, convolution.stride = stride;
  return convolution;
}

// A random image that the kernel fits into at every dilation, with pixels left inside.
Tensor random_image_for(const TheoremOptions& options, const Convolution& convolution, int64_t dilation, Rng& rng) {
  const Reach reach = reach_of(with_steps(convolution, dilation, 1));
  const int64_t min_side = std::max(reach.top + reach.bottom, reach.left + reach.right) + 1,
                side = options.side > 0 ? options.side : min_side + 8;
  check<UsageError>(side >= min_side, "side=", side, " is too small for a kernel of ", kernel_text(convolution), " with dilation ",
                    dilation, ", expected ", min_side, " or more");
  return random_normal({1, convolution.channels(), side, side}, 0, 1, rng, kCpu);
}

// All dilations, strides and paddings at the largest alpha.
void measure_all(const TheoremOptions& options, const TheoremSubject& subject, Rng& rng, Table& table, Report& report) {
  const int64_t dilated = std::max<int64_t>(subject.convolution.dilation, 2), strided = std::max<int64_t>(subject.convolution.stride, 2);
  const Tensor x = random_image_for(options, subject.convolution, dilated, rng);
  for (const int64_t dilation : {int64_t{1}, dilated}) {
    LayerError worst;
    for (const int64_t stride : {int64_t{1}, strided})
      for (const Border border : kBorders) {
        const LayerError error =
            layer_error(with_steps(subject.convolution, dilation, stride), {.alpha = options.alpha, .border = border}, x);
        worst = {std::max(worst.inside, error.inside), std::max(worst.border, error.border)};
        table.rows.push_back({subject.name, static_cast<double>(dilation), static_cast<double>(stride), name_of(border), error.inside,
                              border == Border::none ? Cell("no border") : Cell(error.border)});
      }
    const std::string which = subject.name + ", dilation " + std::to_string(dilation);
    report.measured.push_back(at_most(which + ": error inside", kRoundingError, worst.inside));
    report.measured.push_back(at_most(which + ": error at the border, replicated or zero", kRoundingError, worst.border));
  }
}

// The error falls as e^(-alpha) until only rounding is left.
void add_curve(const TheoremOptions& options, const TheoremSubject& subject, Rng& rng, Lines& lines, Report& report) {
  const Tensor x = random_image_for(options, subject.convolution, subject.convolution.dilation, rng);
  Series inside{.name = subject.name + ", inside"}, border{.name = subject.name + ", border", .mark = Mark::dashed};
  std::vector<double> sharpness, errors;
  for (const double alpha : steps(0.5, options.alpha, static_cast<int>(options.points))) {
    const LayerError error = layer_error(subject.convolution, {.alpha = static_cast<float>(alpha)}, x);
    for (Series* each : {&inside, &border}) each->x.push_back(alpha);
    inside.y.push_back(std::max(error.inside, 1e-9)), border.y.push_back(std::max(error.border, 1e-9));
    if (alpha >= 2.5 && error.inside > 20 * 1e-7) sharpness.push_back(std::exp(alpha)), errors.push_back(error.inside);
  }
  lines.series.push_back(std::move(inside)), lines.series.push_back(std::move(border));
  if (errors.size() >= 3)
    report.measured.push_back(
        equal_to(subject.name + ": exponent of the error in e^α", -1, fitted_power(sharpness, errors).exponent, 0.05));
}

// One channel of an output (1, C, Y, X)
HeatMap channel_map(const Tensor& x, int64_t channel, double most) {
  HeatMap map = heat_map(reshape(slice(x, 1, channel, channel + 1), {x.size(2), x.size(3)}));
  map.diverging = true, map.least = -most, map.most = most;
  return map;
}

void add_film(const TheoremOptions& options, const TheoremSubject& subject, Rng& rng, Report& report) {
  const Convolution& convolution = subject.convolution;
  const bool colours = convolution.channels() == 3;
  check<UsageError>(colours || options.image.empty(), "image: the convolution has ", convolution.channels(), " channels, expected 3");
  const Image image = colours ? image_for(options.image, kShownSide, options.seed) : Image();
  const Tensor x = colours ? image_tensor(image) : random_image_for(options, convolution, convolution.dilation, rng);
  const Reach reach = reach_of(convolution);
  if (x.size(2) <= reach.top + reach.bottom || x.size(3) <= reach.left + reach.right) return;  // no inner pixels
  const NoGrad no_grad;
  const Tensor expected = convolved(convolution, x, Border::replicate);
  int64_t channel = 0;
  const auto largest_of = [&](int64_t c) { return largest(slice(expected, 1, c, c + 1)); };
  for (int64_t c = 1; c < convolution.outputs(); ++c)
    if (largest_of(c) > largest_of(channel)) channel = c;
  const double most = std::max(largest_of(channel), 1e-9);
  Figure film{
      .title = "The layer becomes the convolution",
      .caption = "One channel of the output of the " + subject.name + " kernel and the attention layer on an image, and their difference.",
      .parameter = "α"};
  for (const float alpha : {0.0f, 0.1f, 0.25f, 0.5f, 0.75f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, 10.0f, 20.0f}) {
    const Tensor found = attended(attention_layer(convolution, {.alpha = alpha}, x.size(2), x.size(3)), x);
    Frame frame{.value = number_text(alpha)};
    frame.plots.push_back({"image", colours ? std::variant<Lines, HeatMap, Bars, Image>(image) : channel_map(x, 0, largest(x))});
    frame.plots.push_back({"convolution", channel_map(expected, channel, most)});
    frame.plots.push_back({"attention", channel_map(found, channel, most)});
    frame.plots.push_back({"difference", channel_map(found - expected, channel, most)});
    film.frames.push_back(std::move(frame));
  }
  report.figures.push_back(std::move(film));
}

void add_kernels(const TheoremSubject& subject, Report& report) {
  const Tensor taps = mean(subject.convolution.weight, {1});  // (O, KY, KX)
  std::vector<Plot> plots;
  for (int64_t o = 0; o < std::min<int64_t>(taps.size(0), 4); ++o) {
    HeatMap map = heat_map(reshape(slice(taps, 0, o, o + 1), {taps.size(1), taps.size(2)}));
    map.diverging = true;
    plots.push_back({"filter " + std::to_string(o), std::move(map)});
  }
  report.figures.push_back(figure(
      "Converted kernels", "The " + subject.name + " kernel, averaged over input channels. Every cell is a head.", std::move(plots)));
}

Tensor reversed_indices(int64_t count) {
  std::vector<int64_t> indices;
  for (int64_t i = count; i-- > 0;) indices.push_back(i);
  return Tensor::from(indices, {count}, kCpu);
}

// The opposite sign convention, delta = key - query, as in the original code.
void measure_flipped(const TheoremOptions& options, const TheoremSubject& subject, Rng& rng, Report& report) {
  const NoGrad no_grad;
  const Convolution& convolution = subject.convolution;
  const Tensor x = random_image_for(options, convolution, 1, rng);
  const Model layer = attention_layer(convolution, {.alpha = options.alpha}, x.size(2), x.size(3));
  const Tensor centers = parameter_of(layer, "center");
  copy_into(centers * -1.0f, centers);
  Convolution flipped = convolution;
  flipped.weight = index_select(index_select(convolution.weight, 2, reversed_indices(convolution.weight.size(2))), 3,
                                reversed_indices(convolution.weight.size(3)));
  const LayerError error = error_between(convolution, Border::replicate, x, attended(layer, x), convolved(flipped, x, Border::replicate));
  report.measured.push_back(at_most(subject.name + ", negated centres: error against the flipped kernel", kRoundingError, error.worst()));
}

void measure_checkpoint(const TheoremOptions& options, const TheoremSubject& subject, Rng& rng, Report& report) {
  const NoGrad no_grad;
  const Convolution& convolution = subject.convolution;
  const LayerChoice choice{.alpha = options.alpha, .border = border_named(options.padding)};
  const Tensor x = random_image_for(options, convolution, convolution.dilation, rng), expected = convolved(convolution, x, choice.border);
  const Model layer = attention_layer(convolution, choice, x.size(2), x.size(3));
  write_layer(options.checkpoint, layer, x, expected);
  const Tensor found = attended(load(options.checkpoint), x);
  report.measured.push_back(at_most("checkpoint, read back: distance from the layer", 0, largest_difference(found, attended(layer, x))));
  report.measured.push_back(at_most("checkpoint, read back: error against the convolution", kRoundingError,
                                    error_between(convolution, choice.border, x, found, expected).worst()));
}

Report run_theorem(const TheoremOptions& options, const ProgressCallback& progress) {
  Report report;
  progress("training a convolution");
  const std::vector<TheoremSubject> subjects = subjects_of(options, report);
  Rng rng(options.seed + 1);
  Table table{.title = "Error at α = " + number_text(options.alpha) + ", relative to the largest output",
              .columns = {"convolution", "dilation", "stride", "padding", "inside", "at the border"}};
  Lines lines{.across = {"α"}, .up = {"error / largest output", true}};
  for (const TheoremSubject& subject : subjects) {
    progress(subject.name);
    measure_all(options, subject, rng, table, report);
    add_curve(options, subject, rng, lines, report);
  }
  if (options.weights.empty() && options.steps >= kEnoughSteps)  // the loss of the trained one comes last
    std::rotate(report.measured.begin(), report.measured.begin() + 1, report.measured.end());
  if (options.weights.empty()) measure_flipped(options, subjects[1], rng, report);
  if (!options.checkpoint.empty()) measure_checkpoint(options, subjects.back(), rng, report);
  const double end = std::min<double>(options.alpha, 16);
  lines.series.push_back({"e^-α", {0.5, end}, {std::exp(-0.5), std::exp(-end)}, Mark::points});
  report.statement =
      "$K^2$ heads with positional attention compute the convolution: the centre of a head is the shift of its tap, the taps are the "
      "output weights. The error falls as $e^{-\\alpha}$ down to the rounding of 32-bit floats, inside, at replicated borders, with zero "
      "padding, with dilation, and with stride if only the queries on the strided grid are evaluated.";
  report.tables.push_back(std::move(table));
  report.figures.push_back(figure("Error against sharpness",
                                  "Largest distance between layer and convolution, replicated border; zero is drawn at 1e-9.",
                                  Plot{.body = std::move(lines)}));
  add_film(options, subjects.back(), rng, report);
  add_kernels(subjects.back(), report);
  excuse_blur(report, options.alpha);
  return report;
}

}  // namespace

Experiment convolution_theorem() {
  return {.number = "L19",
          .name = "convolution",
          .topic = Topic::convolution,
          .title = "Attention can be any convolution",
          .claim =
              "A layer with $K^2$ heads and Gaussian positions expresses any $K \\times K$ convolution, with an error that vanishes as the "
              "heads get sharper.",
          .formula = R"(a^h_{qk} \propto e^{-\alpha |\delta - \Delta_h|^2}, \quad \delta = q - k: \quad )"
                     R"(\sum_h \sum_k a^h_{qk} x_k W_h + b \to \sum_h x_{q - \Delta_h} W_h + b \quad (\alpha \to \infty))",
          .setup =
              "Random kernels and a kernel trained on synthetic shapes are converted to attention layers: the centre of each head is the "
              "shift of a tap, its output weights are the tap. Outputs are compared with the convolution on random images for growing "
              "$\\alpha$. Errors are relative to the largest output.",
          .prepare = prepared(declare_theorem, run_theorem)};
}

}  // namespace heed::lab
