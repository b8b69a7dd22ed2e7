// L20: the attention of a head with Gaussian positions as it gets sharper (Cordonnier et al. 2020, lemma 2).
#include <algorithm>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

constexpr double kSharp = 60;  // at a distance of 1 from the nearest key the next one has e^-60

struct LimitOptions {
  int64_t side = 15, points = 41;
  float center_row = 2, center_column = -3, alpha = 60;
};

void declare_limit(Settings& settings, LimitOptions& options, Size) {
  settings.add("side", options.side, "of the grid of keys; the query is in the middle", {.least = 3, .most = 63});
  settings.add("center_row", options.center_row, "the head's centre: query - key, rows; may be between keys or beyond the edge",
               {.least = -63, .most = 63});
  settings.add("center_column", options.center_column, "the same, columns", {.least = -63, .most = 63});
  settings.add("alpha", options.alpha, "the largest sharpness of the curves", {.least = 0, .most = 1e5});
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

// The keys nearest to the centre.
struct NearestKeys {
  std::vector<size_t> keys = {};
  double square = 0, gap = INFINITY;  // their squared distance, and by how much the next one is larger

  explicit NearestKeys(const LimitHead& head) {
    std::vector<double> squares;
    for (int64_t y = 0; y < head.side; ++y)
      for (int64_t x = 0; x < head.side; ++x)
        squares.push_back(std::pow(static_cast<double>(head.middle() - y) - head.row, 2) +
                          std::pow(static_cast<double>(head.middle() - x) - head.column, 2));
    square = *std::min_element(squares.begin(), squares.end());
    for (size_t i = 0; i < squares.size(); ++i) {
      if (squares[i] <= square + 1e-9)
        keys.push_back(i);
      else
        gap = std::min(gap, squares[i] - square);
    }
  }
  double weight(const std::vector<double>& weights) const {
    double out = 0;
    for (const size_t key : keys) out += weights[key];
    return out;
  }
};

Report run_limit(const LimitOptions& options, const ProgressCallback&) {
  const LimitHead head{options.side, options.center_row, options.center_column};
  const NearestKeys nearest(head);
  const double keys = static_cast<double>(options.side * options.side), shared = static_cast<double>(nearest.keys.size());
  const double limit = std::max<double>(options.alpha, kSharp / nearest.gap);
  const bool on_key = head.row == std::round(head.row) && head.column == std::round(head.column);

  Series weight{.name = "weight of the nearest key"}, predicted{.name = "formula", .mark = Mark::points}, spread{.name = "entropy / log N"};
  double gap = 0;
  for (const double alpha : powers(0.01, std::max<double>(options.alpha, 0.02), static_cast<int>(options.points))) {
    const std::vector<double> weights = head.weights(alpha), formula = head.formula(alpha);
    gap = std::max(gap, largest_gap(weights, formula));
    for (Series* each : {&weight, &predicted, &spread}) each->x.push_back(alpha);
    const std::vector<float> narrow(weights.begin(), weights.end());
    weight.y.push_back(nearest.weight(weights)), predicted.y.push_back(nearest.weight(formula)),
        spread.y.push_back(entropy_of(narrow) / std::log(keys));
  }

  // The remaining weight is on the neighbours at distance 1: 4 of them if the target is not at the edge.
  const auto inside = [&](double center) {
    const double at = static_cast<double>(head.middle()) - center;
    return at >= 1 && at <= static_cast<double>(options.side - 2);
  };
  const std::vector<double> nearly = head.weights(10), last = head.weights(limit), flat = head.weights(0),
                            chosen = head.weights(options.alpha);
  double farthest = 0;  // from an equal share for each of the nearest keys
  for (const size_t key : nearest.keys) farthest = std::max(farthest, std::abs(last[key] - 1 / shared));
  const Tensor nothing = Tensor::zeros({1, 1, options.side * options.side, 1}, kCpu);
  const Gaussian2d term{.alpha = Tensor::full({1}, 1, kCpu), .center = head.center(), .width = options.side};
  const std::vector<double> hard = values_of(attention_probabilities(
      nothing, nothing, {.beta = 0.0f, .terms = {term}, .hard = Hard::no_gradient}, {}, {head.middle() * head.side + head.middle()}));
  const LimitHead half{options.side, 0.5, 0.5}, edge{options.side, 0.5, 0}, near{options.side, 0.3, -0.4},
      beyond{options.side, static_cast<double>(head.middle() + 3), 0};
  const auto at_last = [&](const LimitHead& which, int64_t down, int64_t along) { return which.weights(kSharp)[which.index(down, along)]; };

  Report report;
  report.statement =
      "As α grows, the weight of the key at δ = Δ tends to 1 and that of every other key to 0, for its four neighbours as $e^{-\\alpha}$. "
      "A centre between keys selects the nearest one, or shares equally between those at the same distance; one beyond the edge selects "
      "the nearest key at the edge. At α = 0 all keys have the same weight. With centre (" +
      setting_text(head.row) + ", " + setting_text(head.column) + ") the nearest " +
      (shared == 1 ? "key has" : setting_text(shared) + " keys together have") + " a weight of " + number_text(nearest.weight(chosen)) +
      " at α = " + setting_text(options.alpha) + ".";
  report.measured = {
      at_most("distance of the map from the formula, all α", std::max(1e-6, 1.2e-7 * options.alpha * nearest.square), gap),
      equal_to("α = " + setting_text(options.alpha) + ": weight of the nearest keys", nearest.weight(head.formula(options.alpha)),
               nearest.weight(chosen), 1e-5),
      at_most("α = 0: distance from 1 / N", 1e-7, largest_gap(flat, std::vector<double>(flat.size(), 1 / keys))),
      equal_to("limit: weight of the nearest keys", 1, nearest.weight(last), 1e-6),
      at_most("limit: distance from an equal share for each of them", 1e-5, farthest),
      at_most("limit: distance from hard attention", 1e-5, largest_gap(last, hard)),
      equal_to("centre (0.5, 0.5), α = 60: each of 4 keys", 0.25, at_last(half, 0, 1), 1e-6),
      equal_to("centre (0.5, 0), α = 60: each of 2 keys", 0.5, at_last(edge, 1, 0), 1e-6),
      equal_to("centre (0.3, -0.4), α = 60: the nearest key", 1, at_last(near, 0, 0), 1e-4),
      equal_to("centre 3 rows beyond the edge, α = 60: the key at the edge", 1, at_last(beyond, head.middle(), 0), 1e-6),
  };
  if (on_key && inside(head.row) && inside(head.column))
    report.measured.push_back(close_to("α = 10: weight of all other keys, 4 e^-α", 4 * std::exp(-10.0), 1 - nearest.weight(nearly), 0.01));

  report.figures.push_back(
      figure("From all keys to one", "The weight of the target key, and the entropy of the map.",
             Plot{.body = Lines{.across = {"α", true}, .up = {"", false, 0.0, 1.0}, .series = {weight, predicted, spread}}}));
  Figure film{.title = "Attention of one query",
              .caption = "The query is in the middle. Colours are scaled to the largest weight of each map.",
              .parameter = "α"};
  for (const double alpha : {0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 60.0}) {
    Frame frame{.value = number_text(alpha)};
    for (const auto& [title, which] : {std::pair(on_key ? "centre on a key" : "centre between keys", head),
                                       std::pair("between four keys", half), std::pair("beyond the edge", beyond)}) {
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
