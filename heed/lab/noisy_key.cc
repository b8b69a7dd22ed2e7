// L2: how a small perturbation of one key changes the outputs.
#include <algorithm>
#include <array>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct NoisyKeyOptions {
  int64_t tokens = 12, width = 16, key = 0, noises = 16;
  float beta = 0.25f;
  uint64_t seed = 1;
};

void declare_noisy_key(Settings& settings, NoisyKeyOptions& options, Size) {
  settings.add("tokens", options.tokens, "number of queries, and of keys and values", {.least = 4, .most = 256});
  settings.add("width", options.width, "of queries, keys and values", {.least = 2, .most = 256});
  settings.add("key", options.key, "which key gets the noise, from 0", {.least = 0, .most = 255});
  settings.add("noises", options.noises, "number of random noise vectors", {.least = 4, .most = 256});
  settings.add("beta", options.beta, "inverse temperature", {.least = 0.001, .most = 1});
  settings.add("seed", options.seed, "of the random tokens and noises");
}

struct NoisyKey {
  Tensor q, k, v;  // (N, D)
  int64_t j;
  float beta;
  Tensor weight = {};  // (N, 1): a_j of every query
  Tensor h = {};       // (N, D)

  Tensor all(const Tensor& x) const { return reshape(x, {1, 1, x.size(0), x.size(1)}); }
  Tensor out(const Tensor& keys) const { return reshape(attention(all(q), all(keys), all(v), {.beta = beta}), v.shape()); }
  void compute_unperturbed() {
    const Tensor map = reshape(attention_probabilities(all(q), all(k), {.beta = beta}), {q.size(0), k.size(0)});
    weight = slice(map, 1, j, j + 1);
    h = out(k);
  }
  // e: (1, D) -> (N, D)
  Tensor change(const Tensor& e) const {
    std::vector<float> chosen(static_cast<size_t>(k.size(0)));
    chosen[static_cast<size_t>(j)] = 1;
    return out(k + Tensor::from(chosen, {k.size(0), 1}, kCpu) * e) - h;
  }
  Tensor first_order(const Tensor& e) const { return weight * (slice(v, 0, j, j + 1) - h) * matmul(q, transpose(e, 0, 1)) * beta; }
};

double noise_length(const Tensor& x) { return std::sqrt(static_cast<double>(sum(x * x).item())); }

// Jacobian of the output of query i with respect to the noisy key, by autograd, against a_j (v_j - h) beta q^T. Relative to its largest
// entry.
double derivative_distance(const NoisyKey& tokens, int64_t i) {
  const int64_t N = tokens.q.size(0), D = tokens.q.size(1);
  const auto row = [](const Tensor& x, int64_t at) { return slice(x, 0, at, at + 1); };
  const Tensor formula = matmul(transpose(row(tokens.weight, i) * (row(tokens.v, tokens.j) - row(tokens.h, i)), 0, 1),
                                row(tokens.q, i) * tokens.beta);  // (D of h, D of k)
  Tensors rows;
  for (int64_t c = 0; c < D; ++c) {
    Tensor keys = tokens.k.detach();
    keys.require_grad();
    std::vector<float> one(static_cast<size_t>(N * D));
    one[static_cast<size_t>(i * D + c)] = 1;
    backward(tokens.out(keys), Tensor::from(one, {N, D}, kCpu));
    rows.push_back(row(keys.grad(), tokens.j));
  }
  return largest_difference(concat(rows, 0), formula) / largest(formula);
}

Report run_noisy_key(const NoisyKeyOptions& options, const ProgressCallback&) {
  const int64_t N = options.tokens, D = options.width;
  check<UsageError>(options.key < N, "lab: key is ", options.key, ", expected one of the ", N, " tokens, from 0");
  Rng rng(options.seed);
  const auto draw = [&] { return random_normal({N, D}, 0, 1, rng, kCpu); };
  NoisyKey tokens{draw(), draw(), draw(), options.key, options.beta};
  tokens.compute_unperturbed();
  Tensors noises;
  for (int64_t i = 0; i < options.noises; ++i) noises.push_back(random_normal({1, D}, 0, 1, rng, kCpu));
  // Noise is scaled by the size of beta q.e: large enough for f32 rounding, small enough for the first order to hold.
  const auto sized = [&](const Tensor& noise, double size) {
    return noise * static_cast<float>(size / (options.beta * std::sqrt(static_cast<double>(D))));
  };
  const auto lengths = [&](double size) {  // norms of the change, of its first-order term and of the remainder, over all noises and queries
    std::array<double, 3> squares{};
    for (const Tensor& noise : noises) {
      const Tensor e = sized(noise, size), change = tokens.change(e), first = tokens.first_order(e);
      for (size_t i = 0; i < 3; ++i) squares[i] += std::pow(noise_length(i == 0 ? change : i == 1 ? first : change - first), 2);
    }
    for (double& each : squares) each = std::sqrt(each / static_cast<double>(noises.size()));
    return squares;
  };
  const auto slope = [&](size_t which, double from, double to) {
    const std::vector<double> sizes = powers(from, to, 9);
    std::vector<double> found;
    for (double size : sizes) found.push_back(lengths(size)[which]);
    return fitted_power(sizes, found).exponent;
  };

  Report report;
  report.statement =
      "A noise $e$ on key $j$ moves every output along $v_j - h$, in proportion to the weight of that key and to $\\beta q \\cdot e$. The "
      "remainder after the first order grows as the square of the noise.";
  const int64_t heaviest = argmax(reshape(tokens.weight, {N})).item<int64_t>();
  const std::array<double, 3> small = lengths(0.01);
  report.measured = {
      equal_to("slope of the change on a log-log plot", 1, slope(0, 1e-3, 0.1), 0.01),
      equal_to("slope of the remainder after the first order", 2, slope(2, 0.02, 0.2), 0.1),
      close_to("length of the change, β q·e about 0.01", small[1], small[0], 0.01),
      at_most("derivative with respect to the key: relative distance from the formula", 1e-4, derivative_distance(tokens, heaviest)),
  };

  const std::vector<double> sizes = powers(1e-4, 30, 34);
  std::array<std::vector<double>, 3> curves;
  for (double size : sizes)
    for (size_t i = 0; const double each : lengths(size)) curves[i++].push_back(each);
  report.figures.push_back(
      figure("How far the outputs move",
             "All queries together. The size of the noise is its effect on a score; for large noise the softmax saturates.",
             Plot{.body = Lines{.across = {"size of β q·e", true},
                                .up = {"length of the change", true, 1e-7},
                                .series = {{"measured", sizes, curves[0], Mark::points},
                                           {"first order, slope 1", sizes, curves[1]},
                                           {"remainder, slope 2", sizes, curves[2], Mark::dashed}}}}));
  Figure film{
      .title = "Query by query",
      .caption = "One point per query and noise, both lengths divided by the size of the noise. The points leave the line as it grows.",
      .parameter = "size of β q·e"};
  double most = 0;
  std::vector<double> firsts;  // of every noise and query, at size 1
  for (const Tensor& noise : noises)
    for (const double square : values_of(sum(tokens.first_order(sized(noise, 1)) * tokens.first_order(sized(noise, 1)), {1})))
      firsts.push_back(std::sqrt(square)), most = std::max(most, firsts.back());
  for (const double size : {0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0}) {
    std::vector<double> changes;
    for (const Tensor& noise : noises) {
      const Tensor change = tokens.change(sized(noise, size));
      for (const double square : values_of(sum(change * change, {1}))) changes.push_back(std::sqrt(square) / size);
    }
    film.frames.push_back(
        {setting_text(size),
         {Plot{.body = Lines{.across = {"first order: |a (v − h) β q·e|", false, 0.0, most},
                             .up = {"measured", false, 0.0, 1.5 * most},
                             .series = {{"measured", firsts, changes, Mark::points}, {"equal", {0, most}, {0, most}, Mark::dashed}}}}}});
  }
  report.figures.push_back(std::move(film));
  return report;
}

}  // namespace

Experiment noisy_key() {
  return {.number = "L2",
          .name = "noisy-key",
          .topic = Topic::temperature,
          .title = "A small noise on a key",
          .claim = "A small noise $e$ on key $j$ changes an output by $a_j (v_j - h) \\, \\beta q \\cdot e$ to first order.",
          .formula = R"(h(k_j + e) - h(k_j) = a_j (v_j - h) \, \beta \, q \cdot e + \mathcal{O}(|e|^2))",
          .setup =
              "Random noise $e$ of many sizes is added to one key of a layer with random tokens. The change of all outputs is compared "
              "with the first-order formula, and the derivative with respect to the key with the one that autograd computes.",
          .prepare = prepared(declare_noisy_key, run_noisy_key)};
}

}  // namespace heed::lab
