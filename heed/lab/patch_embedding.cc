// L30: patch embedding (Dosovitskiy et al. 2021): a strided convolution and a linear layer on flat patches are the same sums.
#include <cmath>

#include "heed/data/shapes.h"
#include "heed/io/resize.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/patches.h"

namespace heed::lab {
namespace {

struct PatchOptions {
  std::string image = "";
  int64_t side = 64, patch = 8, width = 96;
  uint64_t seed = 1;
};

void declare_patches(Settings& settings, PatchOptions& options, Size size) {
  if (size == Size::full) options.side = 224, options.patch = 16, options.width = 768;
  settings.add("image", options.image, "a PNG or JPEG file; empty: a synthetic one");
  settings.add("side", options.side, "of the image, in pixels", {.least = 16, .most = 1024});
  settings.add("patch", options.patch, "side of a patch, a divisor of side", {.least = 1, .most = 64});
  settings.add("width", options.width, "of a token", {.least = 1, .most = 4096});
  settings.add("seed", options.seed, "of the weights and of the synthetic image");
}

Image patch_image(const PatchOptions& options) {
  if (!options.image.empty()) return resize(read_image(options.image), options.side, options.side);
  return synthetic_shapes({.count = 8, .side = options.side, .seed = options.seed}).image(6);
}

Tensor pixels_of(const Image& image) {  // (1, 3, Y, X), integers from 0 to 255
  const std::vector<float> values(image.pixels.begin(), image.pixels.end());
  return permute(reshape(Tensor::from(values, {image.height, image.width, 3}, kCpu), {1, image.height, image.width, 3}), {0, 3, 1, 2});
}

Tensor random_integers(const Shape& shape, int64_t most, Rng& rng) {
  std::vector<float> values(static_cast<size_t>(count(shape)));
  for (float& value : values) value = static_cast<float>(rng.below(static_cast<uint64_t>(2 * most + 1))) - static_cast<float>(most);
  return Tensor::from(values, shape, kCpu);
}

// The equivalent forms, each (1, N, D) from x: (1, C, Y, X).
struct PatchForms {
  Tensor weight, bias;  // (D, C, P, P), (D)

  int64_t P() const { return weight.size(2); }
  Tensor layer(const Tensor& x) const {
    PatchEmbedding out;
    out.weight = weight, out.bias = bias, out.kernel = weight.shape();
    return out(x);
  }
  // The general convolution kernel. For windows that tile the image conv2d uses a linear layer; a border of zeros avoids that, and outputs
  // of the border are dropped.
  Tensor convolved(const Tensor& x) const {
    const Tensor all = conv2d(x, weight, bias, {.stride = {P(), P()}, .padding = {P(), P()}});  // (1, D, Y/P + 2, X/P + 2)
    return as_tokens(slice(slice(all, 2, 1, -1), 3, 1, -1));
  }
  Tensor tiled(const Tensor& x) const { return as_tokens(conv2d(x, weight, bias, {.stride = {P(), P()}})); }
  static Tensor as_tokens(const Tensor& maps) {  // (1, D, rows, columns) -> (1, N, D)
    return transpose(reshape(maps, {1, maps.size(1), maps.size(2) * maps.size(3)}), 1, 2);
  }
  Tensor flat(const Tensor& x) const {
    return matmul(unfold_patches(x, P(), P()), transpose(reshape(weight, {weight.size(0), -1}), 0, 1)) + bias;
  }
  Tensor channels_last(const Tensor& x) const {  // patches and weights both in channels-last order
    return linear(space_to_depth(x, P()), reshape(permute(weight, {0, 2, 3, 1}), {weight.size(0), -1}), bias);
  }
};

struct PatchGradients {
  Tensor weight, bias;
};
template <class Form>
PatchGradients patch_gradients(const PatchForms& forms, const Tensor& x, const Tensor& g, Form form) {  // g: (1, N, D)
  PatchForms own{forms.weight.detach(), forms.bias.detach()};
  own.weight.require_grad(), own.bias.require_grad();
  backward(sum((own.*form)(x)*g));
  return {own.weight.grad(), own.bias.grad()};
}

// Unit in the last place of the sum: 2^-24 times the sum of |w x|.
Tensor last_place(const PatchForms& forms, const Tensor& x) {  // (1, N, D)
  const auto size = [](const Tensor& t) { return sqrt(t * t); };
  return scale(PatchForms{size(forms.weight), size(forms.bias)}.layer(size(x)), std::ldexp(1.0f, -24));
}
double in_last_places(const PatchForms& forms, const Tensor& x, const Tensor& a, const Tensor& b) {
  return largest((a - b) / last_place(forms, x));
}

// Largest distance of y: (1, N, D) from the sums in double, in last places.
double error_in_last_places(const PatchForms& forms, const Tensor& x, const Tensor& y) {
  const int64_t N = y.size(1), D = y.size(2);
  const std::vector<float> patches = unfold_patches(x, forms.P(), forms.P()).to_vector<float>(), weights = forms.weight.to_vector<float>();
  const std::vector<double> biases = values_of(forms.bias), found = values_of(y), places = values_of(last_place(forms, x));
  const auto K = static_cast<size_t>(forms.weight.count() / D);
  double out = 0;
  for (size_t n = 0; n < static_cast<size_t>(N); ++n)
    for (size_t d = 0; d < static_cast<size_t>(D); ++d) {
      double sum = biases[d];
      for (size_t k = 0; k < K; ++k) sum += static_cast<double>(weights[d * K + k]) * static_cast<double>(patches[n * K + k]);
      const size_t at = n * static_cast<size_t>(D) + d;
      out = std::max(out, std::abs(found[at] - sum) / places[at]);
    }
  return out;
}

// The image with lines between patches.
Image cut_image(const Image& image, int64_t P) {
  const int64_t zoom = std::max<int64_t>(1, 256 / image.width);
  Image out{image.width * zoom, image.height * zoom};
  out.pixels.reserve(static_cast<size_t>(3 * out.width * out.height));
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x)
      for (int64_t channel = 0; channel < 3; ++channel) {
        const bool line = (y % (P * zoom) == 0 && y > 0) || (x % (P * zoom) == 0 && x > 0);
        out.pixels.push_back(line ? uint8_t{255} : image.pixels[static_cast<size_t>(3 * (y / zoom * image.width + x / zoom) + channel)]);
      }
  return out;
}

// Three interpretable features: brightness, left - right, top - bottom. -> (3, 3, P, P)
Tensor plain_features(int64_t P) {
  std::vector<float> values;
  for (int feature = 0; feature < 3; ++feature)
    for (int channel = 0; channel < 3; ++channel)
      for (int64_t y = 0; y < P; ++y)
        for (int64_t x = 0; x < P; ++x) {
          const int64_t place = feature == 1 ? x : y;
          const float sign = feature == 0 ? 1.0f : 2 * place + 1 < P ? 1.0f : 2 * place + 1 > P ? -1.0f : 0.0f;
          values.push_back(sign / static_cast<float>(3 * P * P));
        }
  return Tensor::from(values, {3, 3, P, P}, kCpu);
}

Report run_patches(const PatchOptions& options, const ProgressCallback& progress) {
  const int64_t P = options.patch, D = options.width, side = options.side, K = 3 * P * P, N = (side / P) * (side / P);
  check<UsageError>(side % P == 0, "patch-embedding: side=", side, " is not a multiple of patch=", P);
  const Image image = patch_image(options);
  const Tensor x = pixels_of(image);
  Rng rng(options.seed);
  // Sums of integers below 2^24 are exact in any order: K products of at most 255 * 5.
  const PatchForms integers{random_integers({D, 3, P, P}, 5, rng), random_integers({D}, 100, rng)};
  const Tensor g = random_integers({1, N, D}, 1, rng);
  const Tensor by_layer = integers.layer(x), by_conv = integers.convolved(x);
  const PatchGradients layer_gradients = patch_gradients(integers, x, g, &PatchForms::layer),
                       conv_gradients = patch_gradients(integers, x, g, &PatchForms::convolved);
  const PatchForms real{random_normal({D, 3, P, P}, 0, 1 / std::sqrt(static_cast<float>(K)), rng, kCpu),
                        random_normal({D}, 0, 1, rng, kCpu)};
  const Tensor scaled = scale(x, 1 / 127.5f, -1), real_layer = real.layer(scaled), real_conv = real.convolved(scaled);
  const PatchForms mismatched{reshape(permute(integers.weight, {0, 2, 3, 1}), {D, 3, P, P}), integers.bias};
  const Conv2d half{.stride = {std::max<int64_t>(P / 2, 1), std::max<int64_t>(P / 2, 1)}};

  Report report;
  report.statement =
      "The patch embedding, a convolution whose stride is its kernel size, and a product with the flattened patches are the same sums: for "
      "integers they are bit-identical, including gradients; for other numbers they differ only by the order of additions, in the last "
      "places.";
  report.measured = {
      equal_to("integers: convolution against layer", 0, largest_difference(by_conv, by_layer)),
      equal_to("integers: the same without a border, as heed runs it", 0, largest_difference(integers.tiled(x), by_layer)),
      equal_to("integers: product with flat patches against layer", 0, largest_difference(integers.flat(x), by_layer)),
      equal_to("integers: channels last, in patches and weights", 0, largest_difference(integers.channels_last(x), by_layer)),
      equal_to("gradient of the weights", 0, largest_difference(conv_gradients.weight, layer_gradients.weight)),
      equal_to("gradient of the bias", 0, largest_difference(conv_gradients.bias, layer_gradients.bias)),
      at_most("floats: convolution against layer, in last places", 8, in_last_places(real, scaled, real_conv, real_layer)),
      at_most("floats: product with flat patches, in last places", 8, in_last_places(real, scaled, real.flat(scaled), real_layer)),
      at_most("layer against sums in double, in last places", 8, error_in_last_places(real, scaled, real_layer)),
      at_least("patches flattened in another order than the weights: error", P > 1 ? 1 : 0,
               largest_difference(mismatched.layer(x), by_layer)),
      equal_to("tokens", static_cast<double>(N), static_cast<double>(by_layer.size(1))),
      equal_to("parameters, D (C P² + 1)", static_cast<double>(D * (K + 1)),
               static_cast<double>(integers.weight.count() + integers.bias.count())),
      equal_to("tokens of a convolution with half the stride", std::pow(static_cast<double>((side - P) / half.stride[0] + 1), 2),
               static_cast<double>(conv2d(x, integers.weight, {}, half).count() / D)),
  };

  std::vector<double> patches, layer_errors, conv_errors;
  Table table{.title = "By patch size",
              .columns = {"P", "tokens", "multiply-adds", "convolution minus linear, last places", "linear, ms", "convolution, ms"}};
  Figure film{.title = "From patches to tokens",
              .caption = "The image in patches, and three example features: mean, left minus right, top minus bottom.",
              .parameter = "P"};
  for (const int64_t size : {2, 4, 8, 16, 32}) {
    if (side % size != 0) continue;
    progress("P = " + std::to_string(size));
    const PatchForms forms{random_normal({D, 3, size, size}, 0, 1 / std::sqrt(static_cast<float>(3 * size * size)), rng, kCpu),
                           Tensor::zeros({D}, kCpu)};
    const double error = in_last_places(forms, scaled, forms.convolved(scaled), forms.layer(scaled));
    const std::vector<double> seconds = median_seconds({[&] { forms.layer(scaled); }, [&] { forms.convolved(scaled); }}, 5);
    const auto tokens = static_cast<double>((side / size) * (side / size));
    patches.push_back(static_cast<double>(size));
    layer_errors.push_back(error_in_last_places(forms, scaled, forms.layer(scaled)));
    conv_errors.push_back(error_in_last_places(forms, scaled, forms.convolved(scaled)));
    table.rows.push_back(
        {static_cast<double>(size), tokens, tokens * static_cast<double>(D * 3 * size * size), error, 1e3 * seconds[0], 1e3 * seconds[1]});
    const PatchForms features{plain_features(size), Tensor::zeros({3}, kCpu)};
    Frame frame{std::to_string(size), {Plot{"patches", cut_image(image, size)}}};
    const Tensor maps = features.layer(x);  // (1, N, 3)
    for (int feature = 0; feature < 3; ++feature) {
      HeatMap map = heat_map(reshape(slice(maps, 2, feature, feature + 1), {side / size, side / size}));
      map.diverging = feature > 0;
      frame.plots.push_back({feature == 0 ? "mean" : feature == 1 ? "left minus right" : "top minus bottom", std::move(map)});
    }
    film.frames.push_back(std::move(frame));
  }
  report.tables.push_back(std::move(table));
  report.figures.push_back(std::move(film));
  report.figures.push_back(figure("Rounding", "Largest distance from the sums in double, in units of the last place.",
                                  Plot{.body = Lines{.across = {"patch side", true},
                                                     .up = {"last places", false, 0.0},
                                                     .series = {{"linear layer", patches, layer_errors, Mark::both},
                                                                {"convolution", patches, conv_errors, Mark::dashed}}}}));
  return report;
}

}  // namespace

Experiment patch_embedding() {
  return {
      .number = "L30",
      .name = "patch-embedding",
      .topic = Topic::convolution,
      .title = "Three equivalent patch embeddings",
      .claim = "Patch embedding, a convolution with stride equal to its kernel size, and a linear layer on flattened patches are the same.",
      .formula = R"(t_{n d} = b_d + \sum_c \sum_{y=0}^{P-1} \sum_{x=0}^{P-1} W_{d c y x} \, X_{c, \, P n_1 + y, \, P n_2 + x} = )"
                 R"(b_d + \sum_k W_{d k} \, \mathrm{flat}(X_n)_k)",
      .setup =
          "The three forms compute the embedding of an image with the same weights: random integers, for which sums of any order are "
          "exact, and random floats, whose errors are measured in units of the last place.",
      .prepare = prepared(declare_patches, run_patches)};
}

}  // namespace heed::lab
