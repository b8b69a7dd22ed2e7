// L20: sharp heads attend to one key, heads with alpha 0 to all.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(GaussianLimit, is_one_hot_at_the_centre) {
  const lab::Result result = run_experiment("L20");
  EXPECT_LT(measured(result, "distance of the map from the formula, all α"), 1e-6);
  EXPECT_NEAR(measured(result, "largest α: weight of the key at δ = Δ"), 1, 1e-6);
  EXPECT_LT(measured(result, "largest α: weight of all other keys"), 1e-7);
  EXPECT_NEAR(measured(result, "α = 10: weight of all other keys, 4 e^-α"), 4 * std::exp(-10.0), 4e-2 * std::exp(-10.0));
  EXPECT_NEAR(measured(result, "centre (0.5, 0.5), largest α: each of 4 keys"), 0.25, 1e-6);
  EXPECT_NEAR(measured(result, "centre (0.5, 0), largest α: each of 2 keys"), 0.5, 1e-6);
  EXPECT_NEAR(measured(result, "centre 3 rows beyond the edge, largest α: the key at the edge"), 1, 1e-6);
}

TEST(GaussianLimit, holds_for_other_grids_and_centres) {
  run_experiment("L20", {"side=8", "center_row=-3", "center_column=0", "alpha=200"});
  run_experiment("L20", {"side=31", "center_row=0", "center_column=15"});
  expect_error<UsageError>([] { run_experiment("L20", {"side=5", "center_row=3"}); }, "outside a grid of 5");
}

}  // namespace
}  // namespace heed::test
