// L33: what one head lacks to be a convolution, and how many heads it takes. In 1-D, after Cordonnier, Loukas and Jaggi 2020.
#include <algorithm>
#include <cmath>

#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct OneHeadOptions {
  int64_t tokens = 64, channels = 4, outputs = 6, kernel = 5;
  float alpha = 40;
  uint64_t seed = 1;
};

void declare_one_head(Settings& settings, OneHeadOptions& options, Size size) {
  if (size == Size::full) options.tokens = 512, options.channels = 16, options.outputs = 16;
  settings.add("tokens", options.tokens, "length of the sequence", {.least = 16, .most = 4096});
  settings.add("channels", options.channels, "of every token", {.least = 1, .most = 128});
  settings.add("outputs", options.outputs, "channels of the convolution's output", {.least = 1, .most = 128});
  settings.add("kernel", options.kernel, "taps of the convolution, K", {.least = 2, .most = 9});
  settings.add("alpha", options.alpha, "sharpness of the heads", {.least = 0, .most = 1e5});
  settings.add("seed", options.seed, "of tokens and weights");
}

using SquareMatrix = std::vector<std::vector<double>>;

// Eigenvalues of a small symmetric matrix in descending order: Jacobi's rotations (1846).
std::vector<double> eigenvalues(SquareMatrix a) {
  const size_t n = a.size();
  for (int sweep = 0; sweep < 60; ++sweep)
    for (size_t p = 0; p < n; ++p)
      for (size_t q = p + 1; q < n; ++q) {
        if (std::abs(a[p][q]) < 1e-300) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1)), c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (size_t i = 0; i < n; ++i) std::tie(a[i][p], a[i][q]) = std::pair(c * a[i][p] - s * a[i][q], s * a[i][p] + c * a[i][q]);
        for (size_t i = 0; i < n; ++i) std::tie(a[p][i], a[q][i]) = std::pair(c * a[p][i] - s * a[q][i], s * a[p][i] + c * a[q][i]);
      }
  std::vector<double> out;
  for (size_t i = 0; i < n; ++i) out.push_back(std::max(a[i][i], 0.0));
  std::sort(out.rbegin(), out.rend());
  return out;
}

// The taps of a 1-D convolution as rows: tap i has O C numbers.
std::vector<std::vector<double>> taps_of(const Convolution& convolution) {
  const std::vector<double> weights = values_of(convolution.weight);  // (O, C, 1, K)
  const auto K = static_cast<size_t>(convolution.taps());
  std::vector<std::vector<double>> out(K);
  for (size_t i = 0; i < weights.size(); ++i) out[i % K].push_back(weights[i]);
  return out;
}

double inner(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out += a[i] * b[i];
  return out;
}

// The best single head: weights a >= 0 over offsets, which sum to 1, times one matrix W. Alternating least squares; every step is exact.
struct BestHead {
  std::vector<double> a, w;
  double unexplained = 0;  // share of the squares of the taps

  explicit BestHead(const std::vector<std::vector<double>>& taps) : a(taps.size(), 1), w(taps[0].size()) {
    for (int step = 0; step < 500; ++step) {
      std::fill(w.begin(), w.end(), 0);
      for (size_t i = 0; i < taps.size(); ++i)
        for (size_t c = 0; c < w.size(); ++c) w[c] += a[i] * taps[i][c] / inner(a, a);
      for (size_t i = 0; i < taps.size(); ++i) a[i] = std::max(inner(taps[i], w) / inner(w, w), 0.0);
    }
    double total = 0, left = 0, sum_a = 0;
    for (size_t i = 0; i < taps.size(); ++i) {
      total += inner(taps[i], taps[i]), sum_a += a[i];
      for (size_t c = 0; c < w.size(); ++c) left += std::pow(taps[i][c] - a[i] * w[c], 2);
    }
    unexplained = left / total;
    for (double& each : a) each /= sum_a;
    for (double& each : w) each *= sum_a;
  }
};

double relative_distance(const Tensor& a, const Tensor& b) {
  return std::sqrt(static_cast<double>(sum((a - b) * (a - b)).item()) / static_cast<double>(sum(b * b).item()));
}

Report run_one_head(const OneHeadOptions& options, const ProgressCallback&) {
  const NoGrad no_grad;
  const int64_t N = options.tokens, C = options.channels, O = options.outputs, K = options.kernel;
  Rng rng(options.seed);
  const Tensor x = random_normal({1, C, 1, N}, 0, 1, rng, kCpu);
  Convolution convolution{.weight = random_normal({O, C, 1, K}, 0, 1 / std::sqrt(static_cast<float>(C * K)), rng, kCpu)};
  const std::vector<std::vector<double>> taps = taps_of(convolution);

  // Gram matrix of the taps: its eigenvalues bound what H heads can do, since H heads give taps of rank H or less.
  SquareMatrix gram(taps.size(), std::vector<double>(taps.size()));
  for (size_t i = 0; i < taps.size(); ++i)
    for (size_t j = 0; j < taps.size(); ++j) gram[i][j] = inner(taps[i], taps[j]);
  const std::vector<double> values = eigenvalues(gram);
  double total = 0;
  for (const double value : values) total += value;
  Series bound{.name = "smallest possible", .mark = Mark::both};
  for (size_t H = 0; H <= values.size(); ++H) {
    double left = 0;
    for (size_t i = H; i < values.size(); ++i) left += values[i];
    bound.x.push_back(static_cast<double>(H)), bound.y.push_back(std::sqrt(left / total));
  }
  // One head, as a convolution whose taps are all multiples of one matrix.
  const BestHead best(taps);
  std::vector<float> one_head;
  for (size_t c = 0; c < best.w.size(); ++c)
    for (const double a : best.a) one_head.push_back(static_cast<float>(a * best.w[c]));
  const Convolution single{.weight = Tensor::from(one_head, {O, C, 1, K}, kCpu)};
  // On independent inputs the squared error is the unexplained share; at the edges taps meet on one token, so only inner ones count.
  const double found = relative_distance(convolved(single, x, Border::none), convolved(convolution, x, Border::none));
  // It is the root of a ratio of two sums of squares, whose relative deviation is about 1 / sqrt(number of inputs).
  const double share = std::sqrt(best.unexplained), sampling = std::max(0.1, 1.6 / std::sqrt(static_cast<double>(N * C)));
  constexpr double kExpressed = 0.01;  // a single head is this convolution, up to the last steps of least squares
  const LayerError all_heads = layer_error(convolution, {.alpha = options.alpha}, x);

  Report report;
  report.statement = "A row of an attention map is a set of weights that sum to 1. A band of ones, " + std::to_string(K) +
                     " to a row, sums to " + std::to_string(K) +
                     ": no softmax has such a map. Scaled to 1 it is a mean over neighbours, with one matrix for all of them, where a "
                     "convolution has one for each. The output of the best single head differs from that of this convolution by " +
                     number_text(share > 1e-6 ? 100 * share : 0) +
                     " % of its size. One sharp head per tap, K in 1-D and K² in 2-D, computes it exactly.";
  report.measured = {
      contradicts("sum of a row of a band of ones", 1, static_cast<double>(K)),
      at_least("best single head: error, at least that of rank 1", bound.y[1] - 1e-9, share),
      equal_to("best single head: relative error of the output", share, found, sampling),
      at_most("K heads: error inside, relative to the largest output", kRoundingError, all_heads.inside),
      at_most("K heads: error at the border (replicated edges)", kRoundingError, all_heads.border),
      at_most("smallest possible error of K heads", 1e-6, bound.y.back()),
  };
  if (share > kExpressed)
    report.measured.push_back(at_least("best single head: relative error of the output", std::min(0.1, share / 2), found));
  else
    report.statement +=
        " The taps of this convolution are positive multiples of one matrix, the special case that one head can express, too.";
  Table table{.title = "The best single head", .columns = {"tap", "attention weight", "size of the convolution's matrix"}};
  for (size_t i = 0; i < taps.size(); ++i)
    table.rows.push_back({static_cast<double>(static_cast<int64_t>(i) - K / 2), best.a[i], std::sqrt(inner(taps[i], taps[i]))});
  report.tables.push_back(std::move(table));
  Series constructed{.name = "one head per tap, as built", .x = {static_cast<double>(K)}, .y = {all_heads.inside}, .mark = Mark::points};
  Series one{.name = "best single head", .x = {1}, .y = {found}, .mark = Mark::points};
  report.figures.push_back(
      figure("How many heads a convolution needs",
             "Relative error of the output. H heads give taps that are combinations of H matrices: the bound is that of rank H.",
             Plot{.body = Lines{.across = {"heads"}, .up = {"relative error", false, 0.0}, .series = {bound, one, constructed}}}));
  excuse_blur(report, options.alpha);
  return report;
}

}  // namespace

Experiment one_head_convolution() {
  return {
      .number = "L33",
      .name = "one-head-convolution",
      .topic = Topic::convolution,
      .title = "One head is no convolution, K heads are",
      .claim =
          "One head cannot be a general 1-D convolution: every row of its map would need several ones, but its weights sum to 1. K heads "
          "can.",
      .formula = R"(\sum_i a_i W x_{n + i}, \; a_i \ge 0, \; \sum_i a_i = 1 \quad \text{against} \quad \sum_i W_i x_{n + i})",
      .published = "A single head acts as a convolution when its attention map has ones on the diagonal and beside it.",
      .setup =
          "A random 1-D convolution with K taps is compared with the best single head, found by least squares, and with K heads of "
          "sharp position scores that are built from its weights.",
      .expected = Verdict::corrected,
      .prepare = prepared(declare_one_head, run_one_head)};
}

}  // namespace heed::lab
