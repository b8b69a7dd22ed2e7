// L5: the identity map gives the 1x1 convolution, equal weights give a constant.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(RunningLinearLayer, is_a_1x1_convolution_if_the_map_is_the_identity) {
  const lab::Result result = run_experiment("L5", {"side=12"});
  EXPECT_EQ(result.verdict, lab::Verdict::corrected);
  EXPECT_NEAR(measured(result, "narrow map: smallest weight on the diagonal"), 1, 1e-7);
  EXPECT_LT(measured(result, "narrow map: distance from the 1x1 convolution"), 2e-6);
  EXPECT_LT(measured(result, "diagonal mask: distance from the 1x1 convolution"), 2e-6);
  EXPECT_LT(measured(result, "linear layer, token by token: distance from the 1x1 convolution"), 2e-6);
  EXPECT_NEAR(measured(result, "equal weights: distance from that convolution"), 1, 1e-4);
}

TEST(RunningLinearLayer, accepts_other_sizes_and_refuses_invalid_ones) {
  run_experiment("running-linear-layer", {"side=6", "channels=3", "outputs=1", "seed=7"});
  expect_error<UsageError>([] { run_experiment("L5", {"side=7"}); }, "side is 7, expected an even number");
  expect_error<FileError>([] { run_experiment("L5", {"side=6", "image=/nowhere.png"}); }, "/nowhere.png");
}

}  // namespace
}  // namespace heed::test
