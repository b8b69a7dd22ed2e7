// L3: the weight of a stretched key.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(StretchedKey, gets_all_weight_or_none_by_the_sign) {
  const lab::Result result = run_experiment("L3");
  EXPECT_EQ(result.verdict, lab::Verdict::corrected);
  EXPECT_LT(measured(result, "distance of the weights from the logistic curve"), 1e-5);
  EXPECT_NEAR(measured(result, "q·k > 0: smallest weight in the limit"), 1, 1e-6);
  EXPECT_NEAR(measured(result, "q·k < 0: largest weight in the limit"), 0, 1e-6);
  EXPECT_LT(measured(result, "q·k > 0: distance of the output from the key's value"), 1e-5);
  EXPECT_LT(measured(result, "q·k < 0: distance from the output without the key"), 1e-5);
  EXPECT_NEAR(measured(result, "share of queries whose weight increases"), 0.5, 0.2);
}

TEST(StretchedKey, holds_for_other_sizes_seeds_and_temperatures) {
  for (const char* seed : {"seed=2", "seed=3", "seed=4"}) run_experiment("stretched-key", {seed, "beta=1", "keys=5", "key=4", "width=6"});
}

TEST(StretchedKey, the_slider_ends_at_the_stretch_setting) {
  const lab::Result result = run_experiment("L3", {"stretch=10"});
  EXPECT_EQ(result.report.figures.at(1).frames.back().value, "10");
  expect_error<UsageError>([] { run_experiment("L3", {"keys=4", "key=9"}); }, "key is 9, expected one of the 4 keys");
}

}  // namespace
}  // namespace heed::test
