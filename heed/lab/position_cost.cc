// L12: the cost of scores with absolute positions in the tokens, and with Gaussian positions alone.
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/core/work_count.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct PositionCostOptions {
  int64_t width = 128, least_side = 8, sides = 3;
  float alpha = 1, down = 1, along = -2;
  int64_t rounds = 7;
  uint64_t seed = 1;
};

void declare_position_cost(Settings& settings, PositionCostOptions& options, Size size) {
  if (size == Size::full) options.sides = 4, options.rounds = 11;
  settings.add("width", options.width, "D, of tokens", {.least = 1, .most = 4096});
  settings.add("least_side", options.least_side, "of the smallest grid of tokens", {.least = 2, .most = 64});
  settings.add("sides", options.sides, "number of grids, each twice as wide as the previous one", {.least = 2, .most = 6});
  settings.add("alpha", options.alpha, "sharpness of the Gaussian", {.least = 0, .most = 1000});
  settings.add("down", options.down, "rows from a query to its centre", {.least = -64, .most = 64});
  settings.add("along", options.along, "columns from a query to its centre", {.least = -64, .most = 64});
  settings.add("rounds", options.rounds, "timing rounds", {.least = 3, .most = 1000});
  settings.add("seed", options.seed, "of tokens, positions and weights");
}

constexpr int64_t kOffsets = 3;  // D_p: |delta|^2 and the two parts of delta

struct CostedGrid {
  int64_t side, N;
  Tensor z, p, w, v;  // tokens and positions: (N, D); W_q W_k^T: (D, D); values: (1, 1, N, D)
  Tensor r, u;        // r: (3, N N), (|delta|^2, delta) of every pair of tokens; u: (1, 3), -alpha (1, -2 Delta)
  Gaussian2d term;

  CostedGrid(const PositionCostOptions& options, int64_t grid_side, Rng& rng) : side(grid_side), N(grid_side * grid_side) {
    const int64_t D = options.width;
    z = random_normal({N, D}, 0, 1, rng, kCpu), p = random_normal({N, D}, 0, 1, rng, kCpu);
    w = random_normal({D, D}, 0, 1 / static_cast<float>(D), rng, kCpu), v = random_normal({1, 1, N, D}, 0, 1, rng, kCpu);
    std::vector<float> offsets(static_cast<size_t>(kOffsets * N * N));
    for (int64_t i = 0; i < N; ++i)
      for (int64_t j = 0; j < N; ++j) {
        const auto rows = static_cast<float>(i / side - j / side), columns = static_cast<float>(i % side - j % side);
        const auto at = static_cast<size_t>(i * N + j), pairs = static_cast<size_t>(N * N);
        offsets[at] = rows * rows + columns * columns, offsets[pairs + at] = rows, offsets[2 * pairs + at] = columns;
      }
    const float alpha = options.alpha;
    r = Tensor::from(offsets, {kOffsets, N * N}, kCpu);
    u = Tensor::from(std::vector<float>{-alpha, 2 * alpha * options.down, 2 * alpha * options.along}, {1, kOffsets}, kCpu);
    term = {.alpha = Tensor::from(std::vector<float>{alpha}, {1}, kCpu),
            .center = Tensor::from(std::vector<float>{options.down, options.along}, {1, 2}, kCpu),
            .width = side};
  }
  Tensor absolute_scores() const {  // (Z + P) W (Z + P)^T: (N, N)
    const Tensor x = z + p;
    return matmul(matmul(x, w), transpose(x, 0, 1));
  }
  Tensor gaussian_scores() const { return reshape(matmul(u, r), {N, N}); }
  // Full attention, including values: (1, 1, N, D)
  Tensor absolute_attention() const {
    const Tensor x = z + p;
    const Shape shape{1, 1, N, x.size(1)};
    return attention(reshape(matmul(x, w), shape), reshape(x, shape), v, {.beta = 1.0f});
  }
  Tensor gaussian_attention() const {
    const Tensor nothing = expand(Tensor::zeros({1, 1, 1, 1}, kCpu), {1, 1, N, 1});
    return attention(nothing, nothing, v, {.beta = 0.0f, .terms = {term}});
  }
  Tensor gaussian_map() const {  // (N, N)
    const Tensor nothing = expand(Tensor::zeros({1, 1, 1, 1}, kCpu), {1, 1, N, 1});
    return reshape(attention_probabilities(nothing, nothing, {.beta = 0.0f, .terms = {term}}), {N, N});
  }
};

double counted_scores(const std::function<Tensor()>& compute) {
  const WorkCount count;
  compute();
  return static_cast<double>(count.multiply_adds());
}

// The map of the central query, on the grid.
HeatMap middle_of_map(const Tensor& map, int64_t side) {
  const int64_t middle = side / 2 * side + side / 2;
  return heat_map(reshape(slice(map, 0, middle, middle + 1), {side, side}), "row", "column");
}

Report run_position_cost(const PositionCostOptions& options, const ProgressCallback& progress) {
  const auto D = static_cast<double>(options.width);
  Rng rng(options.seed);
  std::vector<CostedGrid> grids;
  for (int64_t i = 0; i < options.sides; ++i) grids.emplace_back(options, options.least_side << i, rng);
  Report report;
  report.statement =
      "Scores of tokens with absolute positions take N D² + N² D multiply-adds, Gaussian ones N² D_p with D_p = 3: a head uses three "
      "numbers per pair of positions. Such a map is the product of one over rows and one over columns, so attention need not form it: "
      "values are averaged along columns, then along rows, with 2 N D √N multiply-adds.";
  std::vector<double> tokens, absolute_work;
  std::vector<std::function<void()>> functions;
  double apart = 0;
  for (const CostedGrid& x : grids) {
    const auto N = static_cast<double>(x.N);
    const std::string name = "N = " + std::to_string(x.N) + ": ";
    tokens.push_back(N);
    absolute_work.push_back(counted_scores([&] { return x.absolute_scores(); }));
    report.measured.push_back(equal_to(name + "absolute scores, N D² + N² D", N * D * D + N * N * D, absolute_work.back()));
    report.measured.push_back(
        equal_to(name + "Gaussian scores, N² D_p", N * N * kOffsets, counted_scores([&] { return x.gaussian_scores(); })));
    report.measured.push_back(equal_to(name + "full Gaussian attention, 2 N D √N", 2 * N * D * std::sqrt(N),
                                       counted_scores([&] { return x.gaussian_attention(); })));
    apart = std::max(apart, largest_difference(softmax(x.gaussian_scores()), x.gaussian_map()));
    functions.emplace_back([&x] { x.absolute_scores(); });
    functions.emplace_back([&x] { x.gaussian_scores(); });
    functions.emplace_back([&x] { x.absolute_attention(); });
    functions.emplace_back([&x] { x.gaussian_attention(); });
  }
  progress("times");
  const std::vector<double> seconds = processor_seconds(functions, static_cast<int>(options.rounds));
  std::vector<std::vector<double>> ms(4);
  Table table{.title = "Milliseconds",
              .columns = {"N", "absolute: scores", "Gaussian: scores", "absolute: attention", "Gaussian: attention"}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (size_t kind = 0; kind < 4; ++kind) ms[kind].push_back(1e3 * seconds[4 * i + kind]);
    table.rows.push_back({tokens[i], ms[0][i], ms[1][i], ms[2][i], ms[3][i]});
  }
  const auto exponent = [&](size_t kind) { return fitted_power(tokens, ms[kind]).exponent; };
  report.measured.push_back(at_most("softmax of the three-number scores against the term's map: difference", 1e-5, apart));
  report.measured.push_back(by_clock(equal_to("absolute scores: exponent of time in N, as that of the multiply-adds",
                                              fitted_power(tokens, absolute_work).exponent, exponent(0), 0.35)));
  report.measured.push_back(by_clock(equal_to("Gaussian scores: exponent of time in N", 2, exponent(1), 0.5)));
  report.measured.push_back(by_clock(at_most("full Gaussian attention: exponent of time in N", 1.8, exponent(3))));
  if (options.width >= 64) {
    report.measured.push_back(by_clock(at_least("speedup of Gaussian scores, at the largest N", 1.2, ms[0].back() / ms[1].back())));
    report.measured.push_back(by_clock(at_least("speedup of Gaussian attention, at the largest N", 2, ms[2].back() / ms[3].back())));
  } else {
    report.statement += " Tokens of width " + std::to_string(options.width) +
                        " have so few multiply-adds that storing N² scores takes most of the time, whatever they depend on: the speed is "
                        "not compared.";
  }
  report.tables.push_back(std::move(table));
  report.figures.push_back(
      figure("Time against tokens", "Scores alone, and full attention with its values.",
             {Plot{"Scores", Lines{.across = {"tokens N", true},
                                   .up = {"milliseconds", true},
                                   .series = {{"absolute", tokens, ms[0], Mark::both}, {"Gaussian", tokens, ms[1], Mark::both}}}},
              Plot{"Attention", Lines{.across = {"tokens N", true},
                                      .up = {"milliseconds", true},
                                      .series = {{"absolute", tokens, ms[2], Mark::both}, {"Gaussian", tokens, ms[3], Mark::both}}}}}));
  const CostedGrid& shown = grids.front();
  report.figures.push_back(figure("Attention of the central token", "Random tokens and positions, and a Gaussian with three numbers.",
                                  {Plot{"Absolute", middle_of_map(softmax(shown.absolute_scores()), shown.side)},
                                   Plot{"Gaussian", middle_of_map(shown.gaussian_map(), shown.side)}}));
  return report;
}

}  // namespace

Experiment position_cost() {
  return {
      .number = "L12",
      .name = "position-cost",
      .topic = Topic::cost,
      .title = "Absolute positions against Gaussian positions",
      .claim =
          "Scores cost $N D^2 + N^2 D$ multiply-adds with absolute positions, and $N^2 D_p$ with Gaussian ones, with $D_p = 3$ numbers per "
          "pair of positions.",
      .formula = R"((Z + P) W_q W_k^T (Z + P)^T \quad \mathrm{against} \quad v^T r_\delta = -\alpha (|\delta - \Delta|^2 - |\Delta|^2))",
      .setup =
          "Scores and full attention are computed on grids of growing size, once from random tokens with absolute positions and once from "
          "Gaussian positions alone. Multiply-adds are counted, and processor time is measured.",
      .prepare = prepared(declare_position_cost, run_position_cost)};
}

}  // namespace heed::lab
