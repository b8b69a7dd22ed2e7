// L25: what absolute and relative positions look like: similarity of every position to a chosen one, and attention of a query.
#include <algorithm>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/models/architecture.h"
#include "heed/nn/positions.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

struct PositionOptions {
  int64_t rows = 14, columns = 14, width = 64, row = 5, column = 8, tokens = 96;
  float alpha = 0.3f, center_row = 1, center_column = -2, beta = 0.5f;
  std::string model = "";
  uint64_t seed = 1;
};

void declare_positions(Settings& settings, PositionOptions& options, Size size) {
  if (size == Size::full) options.rows = options.columns = 24, options.width = 192, options.tokens = 256;
  settings.add("rows", options.rows, "of the grid", {.least = 3, .most = 64});
  settings.add("columns", options.columns, "of the grid", {.least = 3, .most = 64});
  settings.add("width", options.width, "of a position, a multiple of 4", {.least = 8, .most = 4096});
  settings.add("row", options.row, "of the query, from 0", {.least = 0, .most = 63});
  settings.add("column", options.column, "of the query, from 0", {.least = 0, .most = 63});
  settings.add("tokens", options.tokens, "length of a 1-D sequence", {.least = 8, .most = 1024});
  settings.add("alpha", options.alpha, "sharpness of the Gaussian", {.least = 1e-4, .most = 1e4});
  settings.add("center_row", options.center_row, "its centre: query - key, rows", {.least = -64, .most = 64});
  settings.add("center_column", options.center_column, "the same, columns", {.least = -64, .most = 64});
  settings.add("beta", options.beta, "inverse temperature of scores between absolute positions", {.least = 0.1, .most = 100});
  settings.add("model", options.model, "folder of a vision transformer with learned positions; empty: randomly initialised ones");
  settings.add("seed", options.seed, "of the initialisation");
}

Tensor position_products(const Tensor& p) { return matmul(p, transpose(p, 0, 1)); }  // (N, D) -> (N, N)

Tensor position_cosines(const Tensor& p) { return position_products(p / sqrt(sum(p * p, {1}, true))); }

// The largest spread of the entries along a diagonal, relative to the largest entry.
double spread_along_diagonals(const Tensor& matrix) {
  const int64_t N = matrix.size(0);
  const std::vector<double> values = values_of(matrix);
  double spread = 0;
  for (int64_t distance = 1 - N; distance < N; ++distance) {
    double least = 1e300, most = -1e300;
    for (int64_t i = std::max<int64_t>(0, -distance); i < std::min(N, N - distance); ++i) {
      const double value = values[static_cast<size_t>(i * N + i + distance)];
      least = std::min(least, value), most = std::max(most, value);
    }
    spread = std::max(spread, most - least);
  }
  return spread / largest(matrix);
}

// p_i . p_j of sinusoidal positions with D features: a sum of cosines of the distance.
double sinusoidal_product(double distance, int64_t D) {
  double out = 0;
  for (int64_t i = 0; i < D / 2; ++i) out += std::cos(distance * std::pow(10000.0, -2 * static_cast<double>(i) / static_cast<double>(D)));
  return out;
}

struct PositionGrid {
  int64_t rows, columns;
  int64_t count() const { return rows * columns; }
  int64_t at(int64_t row, int64_t column) const { return row * columns + column; }
};

// Attention of one query from the term alone. -> (rows, columns)
Tensor attention_of(const PositionGrid& grid, const Term& term, int64_t query) {
  const Tensor none = Tensor::zeros({1, 1, grid.count(), 1}, kCpu);
  return reshape(attention_probabilities(none, none, {.beta = 0.0f, .terms = {term}}, {}, {query}), {grid.rows, grid.columns});
}
// The same from the products of absolute positions p: (N, D).
Tensor attention_of(const PositionGrid& grid, const Tensor& p, float beta, int64_t query) {
  const Tensor all = reshape(p, {1, 1, grid.count(), p.size(1)});
  return reshape(attention_probabilities(all, all, {.beta = beta}, {}, {query}), {grid.rows, grid.columns});
}

Gaussian2d gaussian_at(const PositionGrid& grid, float alpha, float row, float column) {
  return {.alpha = Tensor::full({1}, alpha, kCpu),
          .center = Tensor::from(std::vector<float>{row, column}, {1, 2}, kCpu),
          .width = grid.columns};
}

struct AttentionMoments {
  double row = 0, column = 0, row_variance = 0, column_variance = 0;
};
AttentionMoments moments_of(const Tensor& seen) {  // (rows, columns)
  const std::vector<double> p = values_of(seen);
  const int64_t columns = seen.size(1);
  AttentionMoments out;
  const auto each = [&](auto add) {
    for (size_t k = 0; k < p.size(); ++k)
      add(p[k], static_cast<double>(static_cast<int64_t>(k) / columns), static_cast<double>(static_cast<int64_t>(k) % columns));
  };
  each([&](double weight, double row, double column) { out.row += weight * row, out.column += weight * column; });
  each([&](double weight, double row, double column) {
    out.row_variance += weight * (row - out.row) * (row - out.row),
        out.column_variance += weight * (column - out.column) * (column - out.column);
  });
  return out;
}

// Distance from the softmax of -alpha |delta - Delta|^2 with delta = query - key, in double.
double gaussian_error(const PositionGrid& grid, const PositionOptions& options, const Tensor& seen) {
  std::vector<double> weights;
  double all = 0;
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column) {
      const double down = static_cast<double>(options.row - row) - options.center_row,
                   along = static_cast<double>(options.column - column) - options.center_column;
      weights.push_back(-static_cast<double>(options.alpha) * (down * down + along * along));
    }
  const double most = *std::max_element(weights.begin(), weights.end());
  for (double& weight : weights) all += weight = std::exp(weight - most);
  const std::vector<double> found = values_of(seen);
  double out = 0;
  for (size_t k = 0; k < found.size(); ++k) out = std::max(out, std::abs(found[k] - weights[k] / all));
  return out;
}

// The largest change of the log-odds of two keys when query and keys are shifted by one row and one column.
template <class Attend>
double change_of_odds(const PositionGrid& grid, Attend attend) {
  const int64_t row = grid.rows / 2, column = grid.columns / 2;
  const std::vector<double> here = values_of(attend(grid.at(row, column))), there = values_of(attend(grid.at(row + 1, column + 1)));
  double least = 1e300, most = -1e300;
  for (int64_t r = 0; r + 1 < grid.rows; ++r)
    for (int64_t c = 0; c + 1 < grid.columns; ++c) {
      const double a = here[static_cast<size_t>(grid.at(r, c))], b = there[static_cast<size_t>(grid.at(r + 1, c + 1))];
      if (a < 1e-20 || b < 1e-20) continue;  // too small for f32
      least = std::min(least, std::log(b / a)), most = std::max(most, std::log(b / a));
    }
  return most - least;
}

// The position table of a vision transformer, without class tokens. -> (N, D) and its grid
std::pair<Tensor, PositionGrid> table_of(const std::string& folder) {
  const Model model = load(folder);
  if (const Tensor table = position_table(model); table.defined() && model.family().pixels) {
    const int64_t N = table.size(1), D = table.size(2);
    for (const int64_t before : {1, 2, 0}) {
      const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(N - before))));
      if (side * side == N - before) return {reshape(slice(table.detach(), 1, before, N), {N - before, D}), {side, side}};
    }
  }
  fail<FileError>(folder, ": found no learned positions for a square grid of patches, expected a vision transformer");
}

HeatMap similarity_map(const PositionGrid& grid, const Tensor& similar, int64_t place) {  // similar: (N, N)
  HeatMap map = heat_map(reshape(slice(similar, 0, place, place + 1), {grid.rows, grid.columns}), "row", "column");
  map.least = -max(scale(similar, -1)).item(), map.most = 1;  // the same colours for all positions
  return map;
}
HeatMap attention_map(const Tensor& seen) {
  HeatMap map = heat_map(seen, "row", "column");
  map.least = 0;
  return map;
}

Report run_positions(const PositionOptions& options, const ProgressCallback&) {
  const PositionGrid grid{options.rows, options.columns};
  const int64_t D = options.width, N = options.tokens;
  check<UsageError>(options.row < grid.rows && options.column < grid.columns, "position-plots: the query at row ", options.row, ", column ",
                    options.column, ", expected one of ", grid.rows, " x ", grid.columns);
  check<UsageError>(D % 4 == 0, "position-plots: width=", D, ", expected a multiple of 4");
  const int64_t query = grid.at(options.row, options.column);
  Rng rng(options.seed);
  const Tensor line = sinusoidal_positions(N, D), plane = sinusoidal_positions_2d(grid.rows, grid.columns, D);
  const Tensor line_products = position_products(line), weights = random_normal({D, D}, 0, 1 / std::sqrt(static_cast<float>(D)), rng, kCpu);
  const std::vector<double> first_line = values_of(slice(line_products, 0, 0, 1));
  double line_error = 0;
  for (size_t i = 0; i < first_line.size(); ++i)
    line_error = std::max(line_error, std::abs(first_line[i] - sinusoidal_product(static_cast<double>(i), D)));
  // The same vector at every position, rotated by RoPE.
  const Tensor vector = random_normal({1, 1, 1, D}, 0, 1, rng, kCpu), rotated = reshape(Rotary(N, D)(expand(vector, {1, 1, N, D})), {N, D});
  const Tensor untrained = random_normal({grid.count(), D}, 0, 0.02f, rng, kCpu), untrained_cosines = position_cosines(untrained);
  // Over pairs of different positions.
  const auto positions = static_cast<double>(grid.count());
  const double squares = (sum(untrained_cosines * untrained_cosines).item() - positions) / (positions * (positions - 1));

  const RelativeBias2d relative{.table = random_normal({1, 2 * grid.rows - 1, 2 * grid.columns - 1}, 0, 1, rng, kCpu),
                                .width = grid.columns};
  const Gaussian2d round = gaussian_at(grid, options.alpha, options.center_row, options.center_column);
  const Gaussian2dFull slanted{
      .spread = Tensor::from(std::vector<float>{0.9f, 0.9f, -0.2f, 0.2f}, {1, 2, 2}, kCpu), .center = round.center, .width = grid.columns};
  const Tensor gaussian_map = attention_of(grid, round, query);
  const PositionGrid large{33, 33};  // large enough that borders do not matter
  const AttentionMoments seen = moments_of(attention_of(large, gaussian_at(large, 0.25f, 1, -2), large.at(16, 16)));
  const Tensor slopes = Tensor::from(std::vector<float>{0.25f}, {1}, kCpu), none = Tensor::zeros({1, 1, N, 1}, kCpu);
  const std::vector<double> alibi_weights =
      values_of(attention_probabilities(none, none, {.beta = 0.0f, .terms = {Alibi{slopes}}}, {}, {N / 2}));

  Report report;
  report.statement =
      "Products of sinusoidal positions depend only on the distance, and so do rotated vectors and all relative terms: the attention map "
      "moves with the query. Weight matrices between absolute positions, and learned positions, can break that. A Gaussian term attends to "
      "query - Δ, with a variance of 1/(2α).";
  report.measured = {
      at_most("sinusoidal: spread of products at equal distance", 1e-5, spread_along_diagonals(line_products)),
      at_most("sinusoidal: distance from the sum of cosines", 1e-6 * static_cast<double>(D), line_error),
      close_to("sinusoidal: product with itself, D/2", static_cast<double>(D) / 2, values_of(line_products)[0], 1e-5),
      at_most("sinusoidal on a grid: change of log-odds under a shift", 1e-3,
              change_of_odds(grid, [&](int64_t q) { return attention_of(grid, plane, options.beta, q); })),
      at_least("sinusoidal with weight matrices: spread of products at equal distance", 0.1,
               spread_along_diagonals(matmul(matmul(line, weights), transpose(line, 0, 1)))),
      at_most("rotary: spread of products at equal distance", 1e-4, spread_along_diagonals(position_products(rotated))),
      close_to("learned, untrained: standard deviation of cosines, 1/√D", 1 / std::sqrt(static_cast<double>(D)), std::sqrt(squares),
               0.03 + 3 / positions),
      at_most("Gaussian: distance from its formula", 1e-6, gaussian_error(grid, options, gaussian_map)),
      equal_to("Gaussian, α 1/4, Δ (1, -2): mean attended row from row 16", 15, seen.row, 1e-3),
      equal_to("mean attended column from column 16", 18, seen.column, 1e-3),
      close_to("variance of the row, 1/(2α)", 2, seen.row_variance, 0.01),
      close_to("variance of the column, 1/(2α)", 2, seen.column_variance, 0.01),
      at_most("Gaussian: change of log-odds under a shift", 1e-3,
              change_of_odds(grid, [&](int64_t q) { return attention_of(grid, round, q); })),
      at_most("relative table: change of log-odds under a shift", 1e-3,
              change_of_odds(grid, [&](int64_t q) { return attention_of(grid, relative, q); })),
      at_least("learned absolute positions: change of log-odds under a shift", 0.1,
               change_of_odds(grid, [&](int64_t q) { return attention_of(grid, scale(untrained, 10), options.beta, q); })),
      close_to("ALiBi, slope 1/4: weight of the next key relative to the own", std::exp(-0.25),
               alibi_weights[static_cast<size_t>(N / 2 + 1)] / alibi_weights[static_cast<size_t>(N / 2)], 1e-4),
  };

  // --- figures: the query moves through the grid from corner to corner
  const auto [table, table_grid] = options.model.empty() ? std::pair(untrained, grid) : table_of(options.model);
  const Tensor plane_cosines = position_cosines(plane), flat_cosines = position_cosines(sinusoidal_positions(grid.count(), D)),
               table_cosines = position_cosines(table);
  Figure similar{.title = "Similarity of every position to a chosen one",
                 .caption =
                     "Cosine of absolute positions. Sinusoidal ones on the grid encode rows and columns; in reading order they encode "
                     "columns only by distance in the sequence; learned ones start without any order.",
                 .parameter = "position"};
  Figure attended{
      .title = "Attention of a query",
      .caption = "Attention over all keys from positions alone. Relative terms move with the query and are cut off at the border.",
      .parameter = "query"};
  constexpr int64_t kLast = 8;
  for (int64_t stop = 0; stop <= kLast; ++stop) {
    const auto along = [&](const PositionGrid& g) { return g.at(stop * (g.rows - 1) / kLast, stop * (g.columns - 1) / kLast); };
    const int64_t place = along(grid);
    const std::string name = "(" + std::to_string(place / grid.columns) + ", " + std::to_string(place % grid.columns) + ")";
    similar.frames.push_back({name,
                              {Plot{"sinusoidal, rows and columns", similarity_map(grid, plane_cosines, place)},
                               Plot{"sinusoidal, reading order", similarity_map(grid, flat_cosines, place)},
                               Plot{options.model.empty() ? "learned, untrained" : "learned by the model",
                                    similarity_map(table_grid, table_cosines, along(table_grid))}}});
    attended.frames.push_back({name,
                               {Plot{"Gaussian", attention_map(attention_of(grid, round, place))},
                                Plot{"Gaussian, full covariance", attention_map(attention_of(grid, slanted, place))},
                                Plot{"learned relative table", attention_map(attention_of(grid, relative, place))},
                                Plot{"sinusoidal, absolute", attention_map(attention_of(grid, plane, options.beta, place))}}});
  }
  report.figures.push_back(std::move(similar));
  report.figures.push_back(std::move(attended));

  Figure narrow{.title = "A Gaussian that narrows",
                .caption = "From the whole image to one pixel, at the position of the query minus Δ.",
                .parameter = "α"};
  for (const float alpha : {0.003f, 0.01f, 0.03f, 0.1f, 0.2f, 0.3f, 0.5f, 1.0f, 2.0f, 5.0f, 20.0f})
    narrow.frames.push_back(
        {number_text(alpha),
         {Plot{.body = attention_map(attention_of(grid, gaussian_at(grid, alpha, options.center_row, options.center_column), query))}}});
  report.figures.push_back(std::move(narrow));

  const std::vector<double> distances = steps(0, static_cast<double>(N - 1), static_cast<int>(N));
  const std::vector<double> sinusoidal = values_of(slice(position_cosines(line), 0, 0, 1));
  const std::vector<double> rotary = values_of(slice(position_cosines(rotated), 0, 0, 1));
  report.figures.push_back(
      figure("Similarity by distance", "In a 1-D sequence: cosine of sinusoidal positions, and of one vector rotated by rotary positions.",
             Plot{.body = Lines{.across = {"distance"},
                                .up = {"cosine"},
                                .series = {{"sinusoidal", distances, sinusoidal}, {"rotary", distances, rotary, Mark::dashed}}}}));
  return report;
}

}  // namespace

Experiment position_plots() {
  return {.number = "L25",
          .name = "position-plots",
          .topic = Topic::positions,
          .title = "What positions look like",
          .claim =
              "Sinusoidal positions and all relative terms depend on distances alone, so the attention of a query moves with it; learned "
              "absolute positions need not.",
          .formula = R"(p_i \cdot p_j = \sum_m \cos\left(\frac{i - j}{10000^{2 m / D}}\right), \quad )"
                     R"(a_{q k} \propto e^{-\alpha |\delta - \Delta|^2}, \quad \delta = q - k)",
          .setup =
              "Position vectors and attention maps are computed on a grid and on a sequence. Products at equal distances are compared with "
              "each other, and maps with those of a shifted query, by their log-odds, which normalisation at the border does not change.",
          .prepare = prepared(declare_positions, run_positions)};
}

}  // namespace heed::lab
