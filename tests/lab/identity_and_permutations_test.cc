// L4: permutations that a layer can express.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(IdentityAndPermutations, every_permutation_is_expressed) {
  const lab::Result result = run_experiment("L4", {"permutations=10"});
  EXPECT_EQ(measured(result, "permutations of 5 tokens that are expressed, of 120"), 120);
  EXPECT_EQ(measured(result, "random permutations, hard attention: largest distance"), 0);
  EXPECT_LT(measured(result, "random permutations, large β: largest distance"), 1e-6);
  EXPECT_LT(measured(result, "identity, β = 0 to 20: distance of the diagonal from the formula"), 1e-6);
  EXPECT_LT(measured(result, "identity, large β: distance of the output from the input"), 1e-6);
}

TEST(IdentityAndPermutations, the_remainder_matches_the_formula) {
  const lab::Result result = run_experiment("L4", {"tokens=9", "width=3", "permutations=2", "seed=8"});
  const lab::Lines lines = std::get<lab::Lines>(result.report.figures.at(0).frames[0].plots[0].body);
  ASSERT_EQ(lines.series[0].x[20], 5);
  EXPECT_NEAR(lines.series[0].y[0], 8.0 / 9, 1e-6);
  EXPECT_NEAR(lines.series[0].y[20], 1 - 1 / (1 + 8 * std::exp(-5)), 1e-6);
}

TEST(IdentityAndPermutations, small_beta_leaves_weight_on_wrong_tokens) {
  const lab::Result result = run_experiment("L4", {"beta=2", "permutations=2"});
  EXPECT_NEAR(measured(result, "β = 2: weight on the wrong tokens"), 15 * std::exp(-2) / (1 + 15 * std::exp(-2)), 1e-5);
  EXPECT_NE(result.report.statement.find("At β = 2 a share of 0.6700"), std::string::npos) << result.report.statement;
  EXPECT_NEAR(measured(run_experiment("L4", {"beta=0", "permutations=2"}), "β = 0: weight on the wrong tokens"), 15.0 / 16, 1e-5);
}

}  // namespace
}  // namespace heed::test
