// L22: dilation through the centres of heads.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(ConvolutionDilation, follows_from_the_centres_of_heads) {
  const lab::Result result = run_experiment("L22");
  for (const int d : {1, 2, 3, 4}) {
    const std::string which = "dilation " + std::to_string(d);
    EXPECT_LT(measured(result, which + ": error inside"), 1e-5);
    EXPECT_LT(measured(result, which + ": error at the replicated border"), 1e-5);
    EXPECT_EQ(measured(result, which + ": pixels that the central output depends on"), 9);
    EXPECT_EQ(measured(result, which + ": their extent"), 2 * d + 1);
    if (d > 1) {
      EXPECT_GT(measured(result, which + ", centres not dilated: error"), 0.05);
    }
  }
}

TEST(ConvolutionDilation, holds_for_larger_kernels) {
  const lab::Result result = run_experiment("L22", {"kernel=5", "dilations=2", "side=13"});
  EXPECT_EQ(measured(result, "dilation 2: pixels that the central output depends on"), 25);
  EXPECT_EQ(measured(result, "dilation 2: their extent"), 9);
  expect_error<UsageError>([] { run_experiment("L22", {"kernel=5", "side=9"}); }, "side=9 is too small");
}

}  // namespace
}  // namespace heed::test
