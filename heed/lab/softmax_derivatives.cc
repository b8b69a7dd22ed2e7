// L35: the 25 derivatives of a softmax of five scores, at the scores of the sheet and at scaled ones.
#include <algorithm>
#include <array>
#include <cmath>

#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

constexpr std::array<double, 5> kSheetScores{-3, 1, 100, 5, -1};

struct DerivativeOptions {
  float scale = 0.01f;
};

void declare_derivatives(Settings& settings, DerivativeOptions& options, Size) {
  settings.add("scale", options.scale, "factor of the scores in the last table", {.least = 0, .most = 10});
}

struct Derivatives {
  std::array<double, 5> y{};
  std::array<std::array<double, 5>, 5> slope{};  // by output and score

  explicit Derivatives(double scale) {
    double all = 0;
    for (size_t i = 0; i < 5; ++i) all += y[i] = std::exp(scale * (kSheetScores[i] - 100));
    for (double& each : y) each /= all;
    for (size_t i = 0; i < 5; ++i) {
      double others = 0;  // 1 - y_i without cancellation
      for (size_t j = 0; j < 5; ++j) others += j == i ? 0 : y[j];
      for (size_t j = 0; j < 5; ++j) slope[i][j] = i == j ? y[i] * others : -y[i] * y[j];
    }
  }
  double largest_slope() const {
    double out = 0;
    for (const auto& row : slope)
      for (const double each : row) out = std::max(out, std::abs(each));
    return out;
  }
};

// By heed's softmax and its gradient in f32.
double distance_from_autograd(const Derivatives& wanted, double scale) {
  double out = 0;
  for (size_t i = 0; i < 5; ++i) {
    std::vector<float> scores, one(5);
    for (const double score : kSheetScores) scores.push_back(static_cast<float>(scale * score));
    one[i] = 1;
    Tensor z = Tensor::from(scores, {1, 5}, kCpu);
    z.require_grad();
    backward(softmax(z), Tensor::from(one, {1, 5}, kCpu));
    const std::vector<double> found = values_of(z.grad());
    for (size_t j = 0; j < 5; ++j) out = std::max(out, std::abs(found[j] - wanted.slope[i][j]));
  }
  return out;
}

// How far the outputs move when the second score grows by 1: the sensitivity, without derivatives.
double moves_by_one(double scale) {
  std::array<double, 2> largest{100 * scale, std::max(100 * scale, scale + 1)};
  double out = 0;
  std::array<std::array<double, 5>, 2> y{};
  for (size_t step = 0; step < 2; ++step) {
    double all = 0;
    for (size_t i = 0; i < 5; ++i) all += y[step][i] = std::exp(scale * kSheetScores[i] + (i == 1 && step == 1 ? 1 : 0) - largest[step]);
    for (double& each : y[step]) each /= all;
  }
  for (size_t i = 0; i < 5; ++i) out = std::max(out, std::abs(y[1][i] - y[0][i]));
  return out;
}

Table derivative_table(double scale) {
  const Derivatives all(scale);
  Table table{.title = "Derivatives at " + setting_text(scale) + " z", .columns = {"output"}};
  for (const double score : kSheetScores) table.columns.push_back("by z = " + setting_text(score * scale));
  for (size_t i = 0; i < 5; ++i) {
    table.rows.push_back({"y = " + number_text(all.y[i])});
    for (const double each : all.slope[i]) table.rows.back().push_back(each);
  }
  return table;
}

Report run_derivatives(const DerivativeOptions& options, const ProgressCallback&) {
  const Derivatives saturated(1), scaled(options.scale);
  double row_sums = 0, distance = 0, wrong_sign = 0;
  for (const double scale : {1.0, 0.5, 0.1, 0.05, 0.02, 0.01, 0.0}) {
    const Derivatives all(scale);
    distance = std::max(distance, distance_from_autograd(all, scale));
    for (size_t i = 0; i < 5; ++i) {
      double sum_of_row = 0;
      for (size_t j = 0; j < 5; ++j) sum_of_row += all.slope[i][j], wrong_sign += (all.slope[i][j] > 0) != (i == j) && all.slope[i][j] != 0;
      row_sums = std::max(row_sums, std::abs(sum_of_row));
    }
  }
  Report report;
  report.statement =
      "At $z = (-3, 1, 100, 5, -1)$ the third output is 1 and the largest of the 25 derivatives is " +
      number_text(saturated.largest_slope()) +
      ": the softmax is saturated, which means insensitive. When the second score grows by 1, no output changes by more than " +
      number_text(moves_by_one(1)) + ". At " + setting_text(options.scale) + " z the largest derivative is " +
      number_text(scaled.largest_slope()) + "; none can exceed 1/4.";
  report.measured = {
      close_to("largest derivative at z: e^-95", std::exp(-95.0), saturated.largest_slope(), 0.03),
      at_most("distance of heed's gradients from the formula, seven scales", 1e-6, distance),
      at_most("largest sum of a row: a common shift of all scores changes nothing", 1e-12, row_sums),
      equal_to("entries with the wrong sign: positive on the diagonal, negative elsewhere", 0, wrong_sign),
      at_most("largest derivative at any scale of the tables", 0.25, std::max(scaled.largest_slope(), Derivatives(0.02).largest_slope())),
      contradicts("saturated: largest derivative, against the 1/4 of a very sensitive softmax", 0.25, saturated.largest_slope()),
  };
  report.tables = {derivative_table(1), derivative_table(0.1), derivative_table(options.scale)};
  Series slopes{.name = "largest derivative"}, moves{.name = "largest move when z₂ grows by 1", .mark = Mark::dashed};
  for (const double scale : powers(0.001, 1, 61)) {
    slopes.x.push_back(scale), slopes.y.push_back(Derivatives(scale).largest_slope());
    moves.x.push_back(scale), moves.y.push_back(moves_by_one(scale));
  }
  report.figures.push_back(
      figure("Sensitivity by the scale of the scores", "The same five scores times the scale. Changes below 1e-12 are not drawn.",
             Plot{.body = Lines{.across = {"scale", true}, .up = {"change", true, 1e-12}, .series = {slopes, moves}}}));
  return report;
}

}  // namespace

Experiment softmax_derivatives() {
  return {
      .number = "L35",
      .name = "softmax-derivatives",
      .topic = Topic::statistics,
      .title = "All 25 derivatives of a saturated softmax",
      .claim = "A saturated softmax is insensitive: at $z = (-3, 1, 100, 5, -1)$ each of its 25 derivatives is below $10^{-41}$.",
      .formula =
          R"(\frac{\partial y_i}{\partial z_j} = y_i (1[i = j] - y_j), \quad \left| \frac{\partial y_i}{\partial z_j} \right| \le \frac{1}{4})",
      .published = "A saturated softmax is very sensitive to its inputs.",
      .setup =
          "The 25 derivatives are computed in double precision by the formula, at the given scores and at scaled ones, and compared with "
          "those of autograd. One score is then increased by 1 to see how far the outputs move.",
      .expected = Verdict::corrected,
      .prepare = prepared(declare_derivatives, run_derivatives)};
}

}  // namespace heed::lab
