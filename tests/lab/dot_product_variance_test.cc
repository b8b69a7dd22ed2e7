// L7: mean and variance of q.k within 2 % of the formula.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(DotProductVariance, is_as_the_formula_says) {
  const lab::Result result = run_experiment("L7", {"widths=4"});
  for (const int d : {8, 16, 32, 64}) {  // mu = 0.5, sigma = 1
    EXPECT_NEAR(measured(result, "mean of q·k, d = " + std::to_string(d)), 0.25 * d, 0.02 * 0.25 * d);
    EXPECT_NEAR(measured(result, "variance of q·k, d = " + std::to_string(d)), 1.5 * d, 0.02 * 1.5 * d);
  }
  EXPECT_NEAR(measured(result, "exponent of the variance in d"), 1, 0.02);
  EXPECT_NEAR(measured(result, "exponent after dividing by √d"), 0, 0.02);
}

TEST(DotProductVariance, the_published_form_is_contradicted) {
  const lab::Result result = run_experiment("L7", {"widths=2", "least_width=32", "samples=100000"});
  EXPECT_EQ(result.verdict, lab::Verdict::corrected);
  EXPECT_NEAR(measured(result, "variance at the largest d"), 96, 2);
  EXPECT_EQ(result.report.measured.back().predicted, 64 * (0.5 * 64 + 1));
}

TEST(DotProductVariance, holds_for_other_means_and_deviations) {
  const lab::Result result = run_experiment("L7", {"mean=-1", "deviation=0.5", "widths=2", "samples=100000"});
  EXPECT_NEAR(measured(result, "variance of q·k, d = 8"), 8 * (2 * 0.25 + 0.0625), 0.09);
}

}  // namespace
}  // namespace heed::test
