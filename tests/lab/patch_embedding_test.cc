// L30: equivalent patch embeddings, bit for bit.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(PatchEmbedding, matches_a_convolution_and_a_linear_layer) {
  const lab::Result result = run_experiment("L30", {"side=48"});
  EXPECT_EQ(measured(result, "tokens"), 36);
  EXPECT_EQ(measured(result, "parameters, D (C P² + 1)"), 96 * 193);
  EXPECT_EQ(measured(result, "integers: convolution against layer"), 0);
  EXPECT_EQ(measured(result, "integers: product with flat patches against layer"), 0);
  EXPECT_EQ(measured(result, "gradient of the weights"), 0);
  EXPECT_EQ(measured(result, "tokens of a convolution with half the stride"), 121);
  EXPECT_LT(measured(result, "layer against sums in double, in last places"), 8);
  EXPECT_GT(measured(result, "patches flattened in another order than the weights: error"), 100);
}

TEST(PatchEmbedding, holds_for_odd_sizes_and_single_pixels) {
  EXPECT_EQ(measured(run_experiment("L30", {"side=35", "patch=7", "width=3"}), "tokens"), 25);
  EXPECT_EQ(measured(run_experiment("L30", {"side=16", "patch=1", "width=1"}), "tokens of a convolution with half the stride"), 256);
}

TEST(PatchEmbedding, refuses_invalid_settings) {
  expect_error<UsageError>([] { run_experiment("L30", {"side=60"}); }, "not a multiple of patch=8");
  expect_error<FileError>([] { run_experiment("L30", {"image=/nowhere.png"}); }, "/nowhere.png");
}

}  // namespace
}  // namespace heed::test
