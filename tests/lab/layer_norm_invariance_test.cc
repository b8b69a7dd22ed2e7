// L27: layer norm against batch norm.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(LayerNormInvariance, sees_neither_scale_nor_shift_nor_batch) {
  const lab::Result result = run_experiment("L27");
  EXPECT_EQ(result.verdict, lab::Verdict::corrected);
  EXPECT_LT(measured(result, "scaled and shifted token: change of its output"), 1e-5);
  EXPECT_EQ(measured(result, "other items in the batch: change of its output"), 0);
  EXPECT_EQ(measured(result, "the token alone: change of its output"), 0);
  EXPECT_NEAR(measured(result, "deviation over a token's features"), 1, 1e-4);
  EXPECT_LT(measured(result, "gradient along the token itself, relative"), 1e-6);
  EXPECT_LT(measured(result, "scaled by 1e-5 to 1e3: distance from the formula with eps"), 1e-5);
  const lab::Measured& published = result.report.measured[9];  // the batch norm value
  EXPECT_EQ(published.rule, lab::Measured::Rule::contradicts);
  EXPECT_GT(published.predicted, 1);
  EXPECT_EQ(published.measured, 0);
}

TEST(LayerNormInvariance, holds_for_other_sizes) {
  run_experiment("L27", {"items=3", "tokens=1", "width=5", "factor=300", "shift=-100", "seed=4"});
}

}  // namespace
}  // namespace heed::test
