// L7: mean and variance of q.k within 2 % of the formula.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(DotProductVariance, matches_the_formula) {
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

TEST(DotProductVariance, one_term_has_twice_the_mixed_part) {
  const lab::Result result = run_experiment("L7", {"widths=2", "samples=100000"});
  EXPECT_NEAR(measured(result, "variance of one term q_i k_i"), 1.5, 0.02);  // 2 sigma^2 mu^2 + sigma^4
  for (const lab::Measured& each : result.report.measured)
    if (each.name == "variance of one term") {
      EXPECT_EQ(each.rule, lab::Measured::Rule::contradicts);
      EXPECT_EQ(each.predicted, 1.25);
    }
}

TEST(DotProductVariance, matches_the_published_formula_for_mean_0) {
  const lab::Result result = run_experiment("L7", {"mean=0", "widths=2", "samples=100000"});
  EXPECT_EQ(result.verdict, lab::Verdict::holds);
  EXPECT_TRUE(result.as_documented());
  EXPECT_NE(lab::finding_of(result.report).find("At mean = 0"), std::string::npos);
  EXPECT_NEAR(measured(result, "variance at the largest d, as published"), 16, 0.4);
}

TEST(DotProductVariance, allows_for_few_samples) {
  for (const char* seed : {"seed=1", "seed=2", "seed=3", "seed=4", "seed=5"}) run_experiment("L7", {"samples=1000", seed});
}

TEST(DotProductVariance, holds_for_other_means_and_deviations) {
  const lab::Result result = run_experiment("L7", {"mean=-1", "deviation=0.5", "widths=2", "samples=100000"});
  EXPECT_NEAR(measured(result, "variance of q·k, d = 8"), 8 * (2 * 0.25 + 0.0625), 0.09);
}

}  // namespace
}  // namespace heed::test
