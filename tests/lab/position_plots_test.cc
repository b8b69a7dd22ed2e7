// L25: properties of position encodings and of their attention maps.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(PositionPlots, depend_on_distances_only_for_relative_positions) {
  const lab::Result result = run_experiment("L25");
  EXPECT_LT(measured(result, "sinusoidal: spread of products at equal distance"), 1e-5);
  EXPECT_NEAR(measured(result, "sinusoidal: product with itself, D/2"), 32, 1e-4);
  EXPECT_LT(measured(result, "rotary: spread of products at equal distance"), 1e-5);
  EXPECT_GT(measured(result, "sinusoidal with weight matrices: spread of products at equal distance"), 0.5);
  EXPECT_GT(measured(result, "learned absolute positions: change of log-odds under a shift"), 0.3);
  EXPECT_LT(measured(result, "relative table: change of log-odds under a shift"), 1e-4);
}

TEST(PositionPlots, gaussian_heads_attend_to_the_query_minus_their_centre) {
  const lab::Result result = run_experiment("L25", {"rows=9", "columns=12", "row=0", "column=11", "alpha=2"});
  EXPECT_NEAR(measured(result, "Gaussian, α 1/4, Δ (1, -2): mean attended row from row 16"), 15, 1e-3);
  EXPECT_NEAR(measured(result, "mean attended column from column 16"), 18, 1e-3);
  EXPECT_NEAR(measured(result, "variance of the row, 1/(2α)"), 2, 0.02);
  EXPECT_LT(measured(result, "Gaussian: distance from its formula"), 1e-6);
  EXPECT_NEAR(measured(result, "ALiBi, slope 1/4: weight of the next key relative to the own"), std::exp(-0.25), 1e-4);
  // Nine queries along the grid, with a map for each kind of position.
  ASSERT_EQ(result.report.figures.size(), 4u);
  ASSERT_EQ(result.report.figures[1].frames.size(), 9u);
  EXPECT_EQ(result.report.figures[1].frames.back().value, "(8, 11)");
  double sum = 0;
  for (const double p : std::get<lab::HeatMap>(result.report.figures[1].frames[3].plots[0].body).values) sum += p;
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(PositionPlots, refuse_invalid_settings) {
  const auto run = [](const std::string& word) { return [word] { run_experiment("position-plots", {word}); }; };
  expect_error<UsageError>(run("row=14"), "expected one of 14 x 14");
  expect_error<UsageError>(run("width=30"), "a multiple of 4");
  expect_error<FileError>(run("model=/nowhere"), "/nowhere");
}

}  // namespace
}  // namespace heed::test
