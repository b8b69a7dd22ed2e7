// L27: layer norm against batch norm.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(LayerNormInvariance, ignores_scale_shift_and_batch) {
  const lab::Result result = run_experiment("L27");
  EXPECT_EQ(result.verdict, lab::Verdict::corrected);
  EXPECT_LT(measured(result, "scaled and shifted token: change of its output"), 1e-5);
  EXPECT_EQ(measured(result, "other items in the batch: change of its output"), 0);
  EXPECT_EQ(measured(result, "the token alone: change of its output"), 0);
  EXPECT_NEAR(measured(result, "deviation over a token's features"), 1, 1e-4);
  EXPECT_LT(measured(result, "gradient along the token itself, relative"), 1e-6);
  EXPECT_LT(measured(result, "scaled by 1e-5 to 1e3: distance from the formula with eps"), 1e-5);
  const lab::Measured& published = result.report.measured[10];  // the batch norm value
  EXPECT_EQ(published.rule, lab::Measured::Rule::contradicts);
  EXPECT_GT(published.predicted, 1);
  EXPECT_EQ(published.measured, 0);
}

TEST(LayerNormInvariance, holds_for_other_sizes) {
  run_experiment("L27", {"items=3", "tokens=1", "width=5", "factor=300", "shift=-100", "seed=4"});
}

TEST(LayerNormInvariance, a_negative_factor_reflects_the_output_at_the_bias) {
  const lab::Result result = run_experiment("L27", {"factor=-3"});
  EXPECT_LT(measured(result, "reflected and shifted token: distance from the output reflected at the bias"), 1e-5);
  EXPECT_EQ(measured(result, "scaled and shifted token: change of the other tokens' outputs"), 0);
  EXPECT_NE(result.report.statement.find("changes its sign"), std::string::npos);
  const lab::Result flat = run_experiment("L27", {"factor=0", "shift=2"});
  EXPECT_LT(measured(flat, "token of equal features: distance of its output from the bias"), 1e-5);
}

}  // namespace
}  // namespace heed::test
