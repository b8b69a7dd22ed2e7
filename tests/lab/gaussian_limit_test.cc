// L20: sharp heads attend to one key, heads with alpha 0 to all.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(GaussianLimit, is_one_hot_at_the_centre) {
  const lab::Result result = run_experiment("L20");
  EXPECT_LT(measured(result, "distance of the map from the formula, all α"), 1e-6);
  EXPECT_NEAR(measured(result, "limit: weight of the nearest keys"), 1, 1e-7);
  EXPECT_NEAR(measured(result, "α = 10: weight of all other keys, 4 e^-α"), 4 * std::exp(-10.0), 4e-2 * std::exp(-10.0));
  EXPECT_NEAR(measured(result, "centre (0.5, 0.5), α = 60: each of 4 keys"), 0.25, 1e-6);
  EXPECT_NEAR(measured(result, "centre (0.5, 0), α = 60: each of 2 keys"), 0.5, 1e-6);
  EXPECT_NEAR(measured(result, "centre 3 rows beyond the edge, α = 60: the key at the edge"), 1, 1e-6);
}

TEST(GaussianLimit, holds_for_other_grids_and_centres) {
  run_experiment("L20", {"side=8", "center_row=-3", "center_column=0", "alpha=200"});
  run_experiment("L20", {"side=31", "center_row=0", "center_column=15"});
}

TEST(GaussianLimit, supports_every_sharpness_and_centre) {
  // Nine keys in each direction carry all of the weight: a product of two sums.
  double rows = 0, columns = 0;
  for (int i = -9; i <= 9; ++i) rows += std::exp(-3 * std::pow(i - 0.25, 2)), columns += std::exp(-3 * std::pow(i - 0.5, 2));
  const double nearest = std::exp(-3 * 0.0625) * 2 * std::exp(-3 * 0.25) / (rows * columns);
  const lab::Result between = run_experiment("L20", {"alpha=3", "center_row=0.25", "center_column=0.5"});
  EXPECT_NEAR(measured(between, "α = 3: weight of the nearest keys"), nearest, 1e-5);
  EXPECT_NE(between.report.statement.find("the nearest 2 keys together"), std::string::npos) << between.report.statement;
  EXPECT_NEAR(measured(run_experiment("L20", {"alpha=0"}), "α = 0: weight of the nearest keys"), 1.0 / 225, 1e-6);
  run_experiment("L20", {"side=5", "center_row=3"});  // beyond the edge
  run_experiment("L20", {"center_row=20", "center_column=-0.3"});
}

}  // namespace
}  // namespace heed::test
