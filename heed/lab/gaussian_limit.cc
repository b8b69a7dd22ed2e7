// L20: the attention of a head with Gaussian positions as it gets sharper (Cordonnier et al. 2020, lemma 1).
#include <algorithm>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct LimitOptions {
  int64_t side = 15, center_row = 2, center_column = -3, points = 41;
  float alpha = 60;
};

void declare_limit(Settings& settings, LimitOptions& options, Size) {
  settings.add("side", options.side, "of the grid of keys; the query is in the middle", {.least = 3, .most = 63});
  settings.add("center_row", options.center_row, "the head's centre: query - key, rows", {.least = -31, .most = 31});
  settings.add("center_column", options.center_column, "the same, columns", {.least = -31, .most = 31});
  settings.add("alpha", options.alpha, "the largest sharpness", {.least = 20, .most = 1e5});
  settings.add("points", options.points, "number of points on the curves", {.least = 3, .most = 1000});
}

// A head on a square grid, with the query in the middle.
struct LimitHead {
  int64_t side;
  double row, column;  // of the centre

  int64_t middle() const { return side / 2; }
  Tensor center() const { return Tensor::from(std::vector<float>{static_cast<float>(row), static_cast<float>(column)}, {1, 2}, kCpu); }
  std::vector<double> weights(double alpha) const {
    return values_of(head_maps(Tensor::full({1}, alpha, kCpu), center(), side, side, {middle() * side + middle()}));
  }
  // Softmax of the scores v . r_delta with v = -alpha (1, -2 D1, -2 D2) and r = (|delta|^2, delta_1, delta_2).
  std::vector<double> formula(double alpha) const {
    std::vector<double> out;
    for (int64_t y = 0; y < side; ++y)
      for (int64_t x = 0; x < side; ++x) {
        const auto down = static_cast<double>(middle() - y), along = static_cast<double>(middle() - x);
        out.push_back(-alpha * (down * down + along * along) + 2 * alpha * row * down + 2 * alpha * column * along);
      }
    const double most = *std::max_element(out.begin(), out.end());
    double sum = 0;
    for (double& each : out) sum += each = std::exp(each - most);
    for (double& each : out) each /= sum;
    return out;
  }
  size_t index(int64_t down, int64_t along) const {
    return static_cast<size_t>((middle() - down) * side + middle() - along);
  }  // index of key q - (down, along)
};

double largest_gap(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out = std::max(out, std::abs(a[i] - b[i]));
  return out;
}

double sum_without(const std::vector<double>& weights, size_t index) {
  double out = 0;
  for (size_t i = 0; i < weights.size(); ++i) out += i == index ? 0 : weights[i];
  return out;
}

Report run_limit(const LimitOptions& options, const ProgressCallback&) {
  const LimitHead head{options.side, static_cast<double>(options.center_row), static_cast<double>(options.center_column)};
  const auto on_grid = [&](int64_t center) { return head.middle() - center >= 0 && head.middle() - center < options.side; };
  check<UsageError>(on_grid(options.center_row) && on_grid(options.center_column), "center: (", options.center_row, ", ",
                    options.center_column, ") is outside a grid of ", options.side, ", expected from ", head.middle() - options.side + 1,
                    " to ", head.middle());
  const size_t target = head.index(options.center_row, options.center_column);
  const double keys = static_cast<double>(options.side * options.side);

  Series weight{.name = "weight of the key at δ = Δ"}, predicted{.name = "1 / Σ exp(-α |δ - Δ|²)", .mark = Mark::points},
      spread{.name = "entropy / log N"};
  double gap = 0, weight_gap = 0;
  for (const double alpha : powers(0.01, options.alpha, static_cast<int>(options.points))) {
    const std::vector<double> weights = head.weights(alpha), formula = head.formula(alpha);
    gap = std::max(gap, largest_gap(weights, formula));
    weight_gap = std::max(weight_gap, std::abs(weights[target] - formula[target]));
    for (Series* each : {&weight, &predicted, &spread}) each->x.push_back(alpha);
    const std::vector<float> narrow(weights.begin(), weights.end());
    weight.y.push_back(weights[target]), predicted.y.push_back(formula[target]), spread.y.push_back(entropy_of(narrow) / std::log(keys));
  }

  // The remaining weight is on the neighbours at distance 1: 4 of them if the target is not at the edge.
  const auto inside = [&](int64_t center) { return on_grid(center - 1) && on_grid(center + 1); };
  const bool inner = inside(options.center_row) && inside(options.center_column);
  const std::vector<double> nearly = head.weights(10), last = head.weights(options.alpha), flat = head.weights(0);
  const Tensor nothing = Tensor::zeros({1, 1, options.side * options.side, 1}, kCpu);
  const Gaussian2d term{.alpha = Tensor::full({1}, 1, kCpu), .center = head.center(), .width = options.side};
  const std::vector<double> hard = values_of(attention_probabilities(
      nothing, nothing, {.beta = 0.0f, .terms = {term}, .hard = Hard::no_gradient}, {}, {head.middle() * head.side + head.middle()}));
  const LimitHead half{options.side, 0.5, 0.5}, edge{options.side, 0.5, 0}, near{options.side, 0.3, -0.4},
      beyond{options.side, static_cast<double>(head.middle() + 3), 0};
  const auto at_last = [&](const LimitHead& which, int64_t down, int64_t along) {
    return which.weights(options.alpha)[which.index(down, along)];
  };

  Report report;
  report.statement =
      "As α grows, the weight of the key at δ = Δ tends to 1 and that of every other key to 0, for its four neighbours as $e^{-\\alpha}$. "
      "A centre between keys selects the nearest one, or shares equally between those at the same distance; one beyond the edge selects "
      "the nearest key at the edge. At α = 0 all keys have the same weight.";
  report.measured = {
      at_most("distance of the map from the formula, all α", 1e-6, gap),
      at_most("distance of the weight at δ = Δ from the formula, all α", 1e-6, weight_gap),
      at_most("α = 0: distance from 1 / N", 1e-7, largest_gap(flat, std::vector<double>(flat.size(), 1 / keys))),
      equal_to("largest α: weight of the key at δ = Δ", 1, last[target], 1e-6),
      at_most("largest α: weight of all other keys", 1e-7, sum_without(last, target)),
      at_most("largest α: distance from hard attention", 1e-6, largest_gap(last, hard)),
      equal_to("centre (0.5, 0.5), largest α: each of 4 keys", 0.25, at_last(half, 0, 1), 1e-6),
      equal_to("centre (0.5, 0), largest α: each of 2 keys", 0.5, at_last(edge, 1, 0), 1e-6),
      equal_to("centre (0.3, -0.4), largest α: the nearest key", 1, at_last(near, 0, 0), 1e-4),
      equal_to("centre 3 rows beyond the edge, largest α: the key at the edge", 1, at_last(beyond, head.middle(), 0), 1e-6),
  };
  if (inner)
    report.measured.push_back(close_to("α = 10: weight of all other keys, 4 e^-α", 4 * std::exp(-10.0), sum_without(nearly, target), 0.01));

  report.figures.push_back(
      figure("From all keys to one", "The weight of the target key, and the entropy of the map.",
             Plot{.body = Lines{.across = {"α", true}, .up = {"", false, 0.0, 1.0}, .series = {weight, predicted, spread}}}));
  Figure film{.title = "Attention of one query",
              .caption = "The query is in the middle. Colours are scaled to the largest weight of each map.",
              .parameter = "α"};
  for (const double alpha : {0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 60.0}) {
    Frame frame{.value = number_text(alpha)};
    for (const auto& [title, which] :
         {std::pair("centre on a key", head), std::pair("between four keys", half), std::pair("beyond the edge", beyond)}) {
      HeatMap map{.rows = options.side, .columns = options.side, .values = which.weights(alpha)};
      map.least = 0, map.most = *std::max_element(map.values.begin(), map.values.end());
      frame.plots.push_back({title, std::move(map)});
    }
    film.frames.push_back(std::move(frame));
  }
  report.figures.push_back(std::move(film));
  return report;
}

}  // namespace

Experiment gaussian_limit() {
  return {.number = "L20",
          .name = "gaussian-limit",
          .topic = Topic::convolution,
          .title = "A sharp head attends to one position",
          .claim = "As α grows, a head with Gaussian positions puts all its weight on the key at $\\delta = \\Delta$.",
          .formula = R"(a_{qk} = \frac{e^{-\alpha |\delta - \Delta|^2}}{\sum_m e^{-\alpha |\delta_m - \Delta|^2}} \to )"
                     R"(\mathbf{1}[\delta = \Delta] \quad (\alpha \to \infty), \quad \delta = q - k)",
          .setup =
              "The attention map of one head with Gaussian positions is computed for a query in the middle of a grid, for growing "
              "$\\alpha$ and for centres on a key, between keys and beyond the edge, and compared with the formula in double precision.",
          .prepare = prepared(declare_limit, run_limit)};
}

}  // namespace heed::lab
