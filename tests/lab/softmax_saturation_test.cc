// L8: the derivative of the softmax at the scores of the claim, and at others.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(SoftmaxSaturation, all_entries_of_the_derivative_vanish) {
  const lab::Result result = run_experiment("L8", {"draws=256", "widest=256"});
  EXPECT_EQ(measured(result, "entries that vanish at z = (−3, 1, 100, 5, −1), of 25"), 25);
  EXPECT_NEAR(measured(result, "largest entry there by the formula in double precision") / std::exp(-95), 1.02, 0.02);
  EXPECT_EQ(measured(result, "largest entry there by heed's gradient"), 0);
  EXPECT_LT(measured(result, "distance of all entries from y (1[i=j] − y), β = 0.001 to 1"), 1e-7);
  EXPECT_NEAR(measured(result, "largest entry over all β (¼, where y = ½)"), 0.25, 0.001);
  EXPECT_NEAR(measured(result, "random scores over √d: exponent of the trace in d"), 0, 0.03);
}

TEST(SoftmaxSaturation, accepts_scores_as_a_setting) {
  const lab::Result result = run_experiment("softmax-saturation", {"scores=0,0", "draws=64", "widest=128", "seed=3"});
  const lab::HeatMap map = std::get<lab::HeatMap>(result.report.figures.at(0).frames.back().plots[0].body);
  ASSERT_EQ(map.values.size(), 4u);
  EXPECT_NEAR(map.values[0], 0.25, 1e-7);
  EXPECT_NEAR(map.values[1], -0.25, 1e-7);
  expect_error<UsageError>([] { run_experiment("L8", {"scores=1,two"}); }, "scores has 'two', expected comma-separated numbers");
  expect_error<UsageError>([] { run_experiment("L8", {"scores=1"}); }, "scores has 1 numbers, expected 2 to 64");
}

}  // namespace
}  // namespace heed::test
