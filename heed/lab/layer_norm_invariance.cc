// L27: layer norm (Ba et al. 2016) normalises over the features of one token, batch norm (Ioffe and Szegedy 2015) one feature over all
// tokens.
#include <algorithm>
#include <cmath>

#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct LayerNormOptions {
  int64_t items = 4, tokens = 6, width = 32;
  float factor = 20, shift = 7, eps = 1e-5f;
  uint64_t seed = 1;
};

void declare_layer_norm(Settings& settings, LayerNormOptions& options, Size size) {
  if (size == Size::full) options.items = 32, options.tokens = 64, options.width = 512;
  settings.add("items", options.items, "of the batch", {.least = 3, .most = 1024});
  settings.add("tokens", options.tokens, "of each item", {.least = 1, .most = 1024});
  settings.add("width", options.width, "features of a token", {.least = 4, .most = 8192});
  settings.add("factor", options.factor, "factor applied to one token; a negative one reflects it", {.least = -1e4, .most = 1e4});
  settings.add("shift", options.shift, "offset added to all its features", {.least = -1e3, .most = 1e3});
  settings.add("eps", options.eps, "of both norms", {.least = 1e-12, .most = 0.1});
  settings.add("seed", options.seed, "of tokens and weights");
}

struct BothNorms {
  Tensor weight, bias;  // (D)
  float eps;

  Tensor by_token(const Tensor& x) const { return layer_norm(x, weight, bias, eps); }  // (B, N, D)
  Tensor by_batch(const Tensor& x) const {                                             // (B, N, D), by the statistics of the batch
    return transpose(
        batch_norm(transpose(x, 1, 2), weight, bias, {.running_mean = {}, .running_variance = {}, .training = true, .eps = eps}), 1, 2);
  }
};

Tensor first_token_of(const Tensor& x) { return reshape(slice(slice(x, 0, 0, 1), 1, 0, 1), {x.size(2)}); }  // (B, N, D) -> (D)

// The same tokens, with the first one replaced by factor x + shift.
Tensor with_changed_token(const Tensor& x, float factor, float shift) {
  const Tensor items = slice(x, 0, 0, 1), changed = scale(slice(items, 1, 0, 1), factor, shift);
  const Tensor first = x.size(1) == 1 ? changed : concat({changed, slice(items, 1, 1, x.size(1))}, 1);
  return concat({first, slice(x, 0, 1, x.size(0))}, 0);
}

// The largest difference outside the first token of the first item.
double others_move(const Tensor& a, const Tensor& b) {
  const std::vector<double> left = values_of(a), right = values_of(b);
  double out = 0;
  for (size_t i = static_cast<size_t>(a.size(2)); i < left.size(); ++i) out = std::max(out, std::abs(left[i] - right[i]));
  return out;
}

double feature_mean(const Tensor& x) { return mean_of(values_of(x)); }
double feature_deviation(const Tensor& x) {
  const std::vector<double> values = values_of(x);
  const double middle = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// Output deviation for unit weights and a token of deviation s: below 1 only because of eps.
double output_deviation(double s, double eps) { return s / std::sqrt(s * s + eps); }

Report run_layer_norm(const LayerNormOptions& options, const ProgressCallback&) {
  const int64_t B = options.items, N = options.tokens, D = options.width;
  Rng rng(options.seed);
  const Tensor x = random_normal({B, N, D}, 0, 1, rng, kCpu), others = random_normal({B, N, D}, 3, 5, rng, kCpu);
  const Tensor mixed = concat({slice(x, 0, 0, 1), slice(others, 0, 1, B)}, 0);  // the first item among others
  const BothNorms plain{Tensor::ones({D}, kCpu), Tensor::zeros({D}, kCpu), options.eps};
  const BothNorms learned{random_normal({D}, 1, 0.3f, rng, kCpu), random_normal({D}, 0, 0.3f, rng, kCpu), 1e-12f};
  const Tensor changed = with_changed_token(x, options.factor, options.shift), negated = with_changed_token(x, -1, 0);

  const Tensor before = learned.by_token(x);
  // factor x + shift gives the output of x, reflected at the bias for a negative factor; a token of equal features gives the bias.
  const float sign = options.factor > 0 ? 1.0f : options.factor < 0 ? -1.0f : 0.0f;
  const Tensor predicted = scale(first_token_of(before) - learned.bias, sign) + learned.bias;
  const std::string change_name = sign > 0   ? "scaled and shifted token: change of its output"
                                  : sign < 0 ? "reflected and shifted token: distance from the output reflected at the bias"
                                             : "token of equal features: distance of its output from the bias";
  const double size = largest(before), stretch = std::max(std::abs(options.factor), 1e-3f),
               rounding = 4e-6 * (std::abs(options.shift) + stretch) / stretch + 4e-6;
  const Tensor alone = learned.by_token(slice(slice(x, 0, 0, 1), 1, 0, 1));
  const double batch_moves = largest_difference(first_token_of(learned.by_batch(mixed)), first_token_of(learned.by_batch(x)));
  const double token_moves = largest_difference(first_token_of(learned.by_token(mixed)), first_token_of(before));

  // The output is invariant along the token itself and along a shift of all features, so the gradient is orthogonal to both.
  Tensor leaf = reshape(first_token_of(x), {1, D});
  leaf = leaf.detach();
  leaf.require_grad();
  backward(sum(layer_norm(leaf, learned.weight, learned.bias, 1e-12f) * random_normal({1, D}, 0, 1, rng, kCpu)));
  const Tensor slope = leaf.grad();
  const double length = std::sqrt(sum(slope * slope).item() * sum(leaf * leaf).item());

  const Tensor one = first_token_of(x);
  const double spread = feature_deviation(one);
  Report report;
  report.statement =
      "Layer norm takes mean and standard deviation over the features of each token: it is invariant to scaling and shifting a token, and "
      "independent of the rest of the batch. Mean and deviation of a feature over the batch belong to batch norm, whose output changes "
      "with both.";
  report.measured = {
      at_most(change_name, rounding * size, largest_difference(first_token_of(learned.by_token(changed)), predicted)),
      equal_to("scaled and shifted token: change of the other tokens' outputs", 0, others_move(learned.by_token(changed), before)),
      at_most(
          "negated token: distance from the negated output", 4e-6 * size,
          largest_difference(scale(first_token_of(learned.by_token(negated)) - learned.bias, -1) + learned.bias, first_token_of(before))),
      equal_to("other items in the batch: change of its output", 0, token_moves),
      equal_to("the token alone: change of its output", 0, largest_difference(first_token_of(alone), first_token_of(before))),
      equal_to("mean over a token's features, unit weights", 0, feature_mean(first_token_of(plain.by_token(x))), 1e-5),
      equal_to("deviation over a token's features", output_deviation(spread, options.eps),
               feature_deviation(first_token_of(plain.by_token(x))), 1e-5),
      at_most("gradient along the token itself, relative", 1e-5, std::abs(sum(slope * leaf).item()) / length),
      at_most("gradient along a shift of all features, relative", 1e-5,
              std::abs(sum(slope).item()) / std::sqrt(sum(slope * slope).item() * static_cast<double>(D))),
      equal_to("batch norm: mean of a feature over the batch", 0, feature_mean(slice(plain.by_batch(x), 2, 0, 1)), 1e-5),
      contradicts("other items in the batch, normalised over the batch: change of its output", batch_moves, token_moves),
  };
  if (const double by_batch = feature_deviation(first_token_of(plain.by_batch(changed))),
      by_token = feature_deviation(first_token_of(plain.by_token(changed)));
      std::abs(by_batch - by_token) > 0.1 * by_token)  // a factor near 1 changes neither
    report.measured.push_back(contradicts("deviation over a scaled token's features", by_batch, by_token));
  if (sign < 0) report.statement += " A negative factor reflects the output at the bias: $y - b$ changes its sign.";
  if (sign == 0) report.statement += " A factor of 0 leaves a token of equal features, whose output is the bias: eps keeps 0 / 0 away.";

  // How small a token may be before eps matters.
  std::vector<double> factors = powers(1e-5, 1e3, 33), by_token, expected, by_batch;
  for (const double factor : factors) {
    const Tensor scaled = with_changed_token(x, static_cast<float>(factor), 0);
    by_token.push_back(feature_deviation(first_token_of(plain.by_token(scaled))));
    expected.push_back(output_deviation(factor * spread, options.eps));
    by_batch.push_back(feature_deviation(first_token_of(plain.by_batch(scaled))));
  }
  double off = 0;
  for (size_t i = 0; i < factors.size(); ++i) off = std::max(off, std::abs(by_token[i] - expected[i]));
  report.measured.push_back(at_most("scaled by 1e-5 to 1e3: distance from the formula with eps", 1e-4, off));
  report.figures.push_back(
      figure("A scaled token",
             "Deviation of the output over its features. Layer norm keeps it at 1 until eps is larger than the token's variance.",
             Plot{.body = Lines{.across = {"factor", true},
                                .up = {"deviation after the norm", true},
                                .series = {{"layer norm", factors, by_token, Mark::both},
                                           {"s / √(s² + eps)", factors, expected, Mark::dashed},
                                           {"batch norm", factors, by_batch}}}}));
  Figure film{.title = "One token grows",
              .caption =
                  "Rows are the tokens of the first item, columns their features; the first token is scaled. Layer norm is unaffected; "
                  "batch norm lets the token grow and shrinks the others.",
              .parameter = "factor"};
  const auto shown = [&](const Tensor& tokens, const char* title) {
    HeatMap map =
        heat_map(reshape(slice(slice(tokens, 0, 0, 1), 2, 0, std::min<int64_t>(D, 32)), {N, std::min<int64_t>(D, 32)}), "token", "feature");
    map.least = -3, map.most = 3, map.diverging = true;
    return Plot{title, std::move(map)};
  };
  for (const float factor : {0.1f, 0.3f, 1.0f, 2.0f, 4.0f, 8.0f, 16.0f, 32.0f}) {
    const Tensor scaled = with_changed_token(x, factor, 0);
    film.frames.push_back(
        {number_text(factor),
         {shown(scaled, "tokens"), shown(plain.by_token(scaled), "layer norm"), shown(plain.by_batch(scaled), "batch norm")}});
  }
  report.figures.push_back(std::move(film));
  return report;
}

}  // namespace

Experiment layer_norm_invariance() {
  return {.number = "L27",
          .name = "layer-norm-invariance",
          .topic = Topic::layers,
          .title = "Layer norm is computed per token",
          .claim =
              "The output of layer norm does not change when a token is scaled by a positive number and shifted, and does not depend on "
              "the batch.",
          .formula = R"(y_d = w_d \frac{x_d - \mu}{\sqrt{\sigma^2 + \epsilon}} + b_d, \quad \mu = \frac{1}{D} \sum_d x_d, \quad )"
                     R"(\sigma^2 = \frac{1}{D} \sum_d (x_d - \mu)^2, \quad y(a x + c) = y(x) \text{ for } a > 0)",
          .published = "The features are normalised by their mean and variance over the batch: that is batch norm.",
          .setup =
              "Layer norm and batch norm are applied to the same random batch. Then one token is scaled, shifted or negated, or the other "
              "items of the batch are replaced, and the change of its output is measured.",
          .expected = Verdict::corrected,
          .prepare = prepared(declare_layer_norm, run_layer_norm)};
}

}  // namespace heed::lab
