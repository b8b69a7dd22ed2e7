// Positions against the formulas of the papers in double, properties of rotary positions, and scores that depend on distances.
#include "heed/nn/positions.h"

#include <gtest/gtest.h>

#include "heed/nn/multi_head.h"
#include "tests/expect_error.h"
#include "tests/nn/plain.h"

namespace heed::test {
namespace {

TEST(Positions, sinusoids_match_the_formula) {
  const int64_t N = 7, D = 10;
  const Doubles near(sinusoidal_positions(N, D)), apart(sinusoidal_positions(N, D, Pairing::halves));
  for (int64_t n = 0; n < N; ++n)
    for (int64_t i = 0; i < D / 2; ++i) {
      const double angle = static_cast<double>(n) / std::pow(10000, 2 * static_cast<double>(i) / D);
      EXPECT_NEAR(near[n * D + 2 * i], std::sin(angle), 1e-7);
      EXPECT_NEAR(near[n * D + 2 * i + 1], std::cos(angle), 1e-7);
      EXPECT_NEAR(apart[n * D + i], std::sin(angle), 1e-7);
      EXPECT_NEAR(apart[n * D + D / 2 + i], std::cos(angle), 1e-7);
    }
  expect_error([] { sinusoidal_positions(3, 5); }, "positions: 5 features do not pair up");
}

TEST(Positions, halves_encode_row_and_column_on_a_grid) {
  const Tensor grid = reshape(sinusoidal_positions_2d(3, 5, 8), {3, 5, 8}), row = sinusoidal_positions(3, 4),
               column = sinusoidal_positions(5, 4);
  for (int64_t y = 0; y < 3; ++y)
    for (int64_t x = 0; x < 5; ++x) {
      const Tensor cell = reshape(slice(slice(grid, 0, y, y + 1), 1, x, x + 1), {1, 8});
      expect_near(slice(cell, 1, 0, 4), slice(row, 0, y, y + 1), 0);
      expect_near(slice(cell, 1, 4, 8), slice(column, 0, x, x + 1), 0);
    }
  expect_error([] { sinusoidal_positions_2d(3, 5, 6); }, "positions: 6 features on a grid, expected a multiple of 4");
}

TEST(Positions, learned_positions_have_gradients) {
  Params params(1);
  const Scope scope(params, initializer::bert());
  const LearnedPositions line(scope / "line", 9, 4);
  EXPECT_EQ(line(3, 2).shape(), (Shape{3, 4}));
  EXPECT_EQ(line(3, 2).to_vector<float>(), slice(line.weight, 0, 2, 5).to_vector<float>());
  const LearnedPositions2d grid(scope / "grid", 2, 3, 4);
  backward(sum(grid()));
  EXPECT_EQ(grid().shape(), (Shape{6, 4}));
  EXPECT_EQ(grid.row.grad().to_vector<float>(), std::vector<float>(4, 3));     // each row is used for three columns
  EXPECT_EQ(grid.column.grad().to_vector<float>(), std::vector<float>(6, 2));  // each column two rows
  const std::vector<float> cells = grid().to_vector<float>(), columns = grid.column.to_vector<float>();
  EXPECT_EQ(cells[5 * 4 + 3], columns[2 * 2 + 1]);
  for (const Parameter& p : params.all()) EXPECT_FALSE(p.options.decays) << p.name;
}

// x rotated by the formula, in double.
Doubles rotate(const Doubles& x, int64_t rotated, Pairing pairing, int64_t first) {
  Doubles y = x;
  const int64_t N = x.dim(-2), D = x.dim(-1);
  for (int64_t r = 0; r < x.size() / D; ++r)
    for (int64_t i = 0; i < rotated / 2; ++i) {
      const bool near = pairing == Pairing::interleaved;
      const int64_t a = r * D + (near ? 2 * i : i), b = r * D + (near ? 2 * i + 1 : i + rotated / 2);
      const double angle = static_cast<double>(first + r % N) * std::pow(10000, -2 * static_cast<double>(i) / static_cast<double>(rotated));
      y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
    }
  return y;
}

TEST(Rotary, rotates_pairs) {
  for (Pairing pairing : {Pairing::interleaved, Pairing::halves})
    for (int64_t rotated : {8, 4}) {
      const Rotary rotary(20, 8, {.pairing = pairing, .rotated = rotated});
      check_case("rotary", {.what = std::to_string(rotated) + " of 8",
                            .inputs = {normal_input({2, 3, 5, 8}, 1)},
                            .run = [&](const Tensors& in) { return Tensors{rotary(in[0], 7)}; },
                            .reference = [&](const Many& in) { return Many{rotate(in[0], rotated, pairing, 7)}; },
                            .halves = false});
    }
  expect_error([] { Rotary(4, 8)(Tensor::ones({5, 8}, test_device())); }, "rotary: tokens 0 to 5, the table has 4");
  expect_error([] { Rotary(4, 8)(Tensor::ones({3, 6}, test_device())); }, "rotary: x has shape (3, 6), expected (..., N, 8)");
  expect_error([] { Rotary(4, 8, {.rotated = 10}); }, "rotary: 10 rotated features, expected at most the head width of 8");
}

TEST(Rotary, products_depend_only_on_the_distance) {
  for (Pairing pairing : {Pairing::interleaved, Pairing::halves}) {
    const Rotary rotary(100, 16, {.pairing = pairing});
    const Tensor q = normal_input({1, 16}, 1), k = normal_input({1, 16}, 2);
    const auto product = [&](int64_t i, int64_t j) { return sum(rotary(q, i) * rotary(k, j)).item(); };
    EXPECT_NEAR(product(3, 8), product(60, 65), 1e-4);
    EXPECT_NEAR(product(0, 0), sum(q * k).item(), 1e-5);
    EXPECT_GT(std::abs(product(3, 8) - product(8, 3)), 1e-2);
  }
}

TEST(Positions, gaussian_positions_are_initialized_as_published) {
  Params params(1);
  const Gaussian2d positions = gaussian_positions(Scope(params, initializer::bert()), 4000, 16);
  const auto deviation = [](const Tensor& x) { return std::sqrt(variance(x).item()); };
  EXPECT_NEAR(mean(positions.alpha).item(), 1, 1e-3);
  EXPECT_NEAR(deviation(positions.alpha), 0.01, 5e-4);
  EXPECT_NEAR(mean(positions.center).item(), 0, 0.1);
  EXPECT_NEAR(deviation(positions.center), 2, 0.1);
  for (const Parameter& p : params.all()) EXPECT_FALSE(p.options.decays) << p.name;
}

TEST(Positions, alibi_slopes_match_the_paper) {
  EXPECT_EQ(alibi_slopes(8).to_vector<float>(), (std::vector<float>{0.5f, 0.25f, 0.125f, 0.0625f, 0x1p-5f, 0x1p-6f, 0x1p-7f, 0x1p-8f}));
  EXPECT_EQ(alibi_slopes(3).to_vector<float>(), (std::vector<float>{0x1p-4f, 0x1p-8f, 0x1p-2f}));
}

// A whole layer with the given positions against the formula per head.
void check_positions(const std::string& what, int64_t N, const std::function<ScorePositions(const Scope&)>& make,
                     const std::function<plain::Score(const NamedDoubles& p, const Many& in)>& score) {
  Params params(1);
  const MultiHeadAttention layer =
      make_multi_head(Scope(params, initializer::bert()) / "attention",
                      {.width = 6, .heads = 3, .positions = [&](const Scope& scope) { return std::vector<ScorePositions>{make(scope)}; }});
  randomize(params, 0.7f);
  check_module(what, {.params = params,
                      .inputs = {normal_input({2, N, 6}, 1)},
                      .run = [&](const Tensors& in) { return layer(in[0]); },
                      .reference = [&](const NamedDoubles& p,
                                       const Many& in) { return plain::multi_head(p, "attention", in[0], in[0], 3, 3, score(p, in)); }});
}

TEST(Positions, relative_positions_add_to_scores) {
  check_positions(
      "a line", 5, [](const Scope& scope) { return Term(relative_positions(scope, 3, 2)); },
      [](const NamedDoubles& p, const Many&) -> plain::Score {
        return [&](double s, int64_t, int64_t h, int64_t i, int64_t j) {
          return s + p.at("attention.positions.table")[h * 5 + std::clamp<int64_t>(j - i, -2, 2) + 2];
        };
      });
  check_positions(
      "a grid", 6, [](const Scope& scope) { return Term(relative_positions_2d(scope, 3, 2, 3)); },
      [](const NamedDoubles& p, const Many&) -> plain::Score {
        return [&](double s, int64_t, int64_t h, int64_t i, int64_t j) {
          return s + p.at("attention.positions.table")[h * 15 + (j / 3 - i / 3 + 1) * 5 + j % 3 - i % 3 + 2];
        };
      });
}

// Z_q W_q W~ r + u W_k Z_k + v W~ r added to the content, all with the same scale; one token and several.
TEST(Positions, relative_content_matches_the_four_terms) {
  for (int64_t N : {1, 5})
    check_positions(
        std::to_string(N) + " tokens", N, [](const Scope& scope) { return RelativeContent(scope, 3, 2, 4); },
        [N](const NamedDoubles& p, const Many& in) -> plain::Score {
          const Doubles q = plain::linear(p, "attention.query", in[0]), k = plain::linear(p, "attention.key", in[0]);
          return [&p, q, k, N](double s, int64_t b, int64_t h, int64_t i, int64_t j) {
            const Doubles &u = p.at("attention.positions.key_bias"), &v = p.at("attention.positions.position_bias");
            Doubles r({1, 4});
            for (int64_t f = 0; f < 2; ++f) {
              const double angle = static_cast<double>(i - j) * std::pow(10000, -static_cast<double>(f) / 2);
              r[2 * f] = std::sin(angle);
              r[2 * f + 1] = std::cos(angle);
            }
            const Doubles distance = plain::linear(p, "attention.positions.position", r);
            for (int64_t d = 0; d < 2; ++d) {
              const double query = q[((b * N + i) * 3 + h) * 2 + d], key = k[((b * N + j) * 3 + h) * 2 + d];
              s += ((query + v[h * 2 + d]) * distance[h * 2 + d] + u[h * 2 + d] * key) / std::sqrt(2.0);
            }
            return s;
          };
        });
}

// On a grid r has the sinusoids of the distance in rows, then in columns.
TEST(Positions, relative_content_on_a_grid_matches_the_four_terms) {
  const int64_t N = 6, width = 3;
  check_positions(
      "a grid", N,
      [](const Scope& scope) {
        return RelativeContent(scope, 3, 2, 8, TokenGrid{2, 3});
      },
      [](const NamedDoubles& p, const Many& in) -> plain::Score {
        const Doubles q = plain::linear(p, "attention.query", in[0]), k = plain::linear(p, "attention.key", in[0]);
        return [&p, q, k](double s, int64_t b, int64_t h, int64_t i, int64_t j) {
          const Doubles &u = p.at("attention.positions.key_bias"), &v = p.at("attention.positions.position_bias");
          Doubles r({1, 8});
          for (int64_t f = 0; f < 4; ++f) {
            const int64_t distance = f < 2 ? i / width - j / width : i % width - j % width;
            const double angle = static_cast<double>(distance) * std::pow(10000, -static_cast<double>(f % 2) / 2);
            r[2 * f] = std::sin(angle);
            r[2 * f + 1] = std::cos(angle);
          }
          const Doubles relative = plain::linear(p, "attention.positions.position", r);
          for (int64_t d = 0; d < 2; ++d) {
            const double query = q[((b * N + i) * 3 + h) * 2 + d], key = k[((b * N + j) * 3 + h) * 2 + d];
            s += ((query + v[h * 2 + d]) * relative[h * 2 + d] + u[h * 2 + d] * key) / std::sqrt(2.0);
          }
          return s;
        };
      });
}

}  // namespace
}  // namespace heed::test
