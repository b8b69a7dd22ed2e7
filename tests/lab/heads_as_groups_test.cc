// L6: block-diagonal heads against convolutions in groups.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(HeadsAsGroups, match_grouped_convolutions) {
  const lab::Result result = run_experiment("L6");
  EXPECT_LT(measured(result, "layer of all heads: distance from the sum over heads of A Z W + b"), 3e-6);
  EXPECT_LT(measured(result, "block-diagonal heads: distance from separate layers on groups of channels"), 3e-6);
  EXPECT_LT(measured(result, "block-diagonal heads, identity map: distance from the grouped 1x1 convolution"), 3e-6);
  EXPECT_LT(measured(result, "9 heads per group, shifted maps: distance from the grouped 3x3 convolution, inside"), 3e-6);
  EXPECT_EQ(measured(result, "nonzero weights, block-diagonal / dense"), 0.25);
  EXPECT_EQ(measured(result, "influence across groups, block-diagonal heads"), 0);
  EXPECT_GT(measured(result, "influence across groups, dense heads"), 0.1);
}

TEST(HeadsAsGroups, accept_any_number_that_divides) {
  const lab::Result result = run_experiment("heads-as-groups", {"channels=6", "heads=3", "side=5", "seed=4"});
  EXPECT_NEAR(measured(result, "nonzero weights, block-diagonal / dense"), 1.0 / 3, 1e-12);
  EXPECT_EQ(result.report.figures[0].frames.size(), 4u);  // 1, 2, 3, 6
  expect_error<UsageError>([] { run_experiment("L6", {"channels=6", "heads=4"}); }, "4 heads do not divide 6 channels");
}

}  // namespace
}  // namespace heed::test
