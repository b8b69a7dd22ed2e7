// L10: counts of parameters, from formulas and from layers.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(ParameterCounts, match_one_head_and_a_fully_connected_layer) {
  const lab::Result result = run_experiment("L10", {"tokens=5", "width=12"});
  EXPECT_EQ(measured(result, "weights of one head: 3D²"), 3 * 12 * 12);
  EXPECT_EQ(measured(result, "biases of one head: 3D"), 36);
  EXPECT_EQ(measured(result, "weights of its map: N²"), 25);
  EXPECT_EQ(measured(result, "weights of a fully connected layer: D²N²"), 3600);
  EXPECT_EQ(measured(result, "biases of a fully connected layer: DN"), 60);
  EXPECT_NEAR(measured(result, "fully connected biases, N²: exponent in N"), 1, 1e-9);
}

TEST(ParameterCounts, match_the_multi_head_layer) {
  const std::string name = "multi-head layer: N_h (2 D_i D_hid + D_i D_o) + N_h D_o D_out + D_out";
  const lab::Result result = run_experiment("L10", {"heads=3", "inputs=7", "hidden=5", "values=4", "outputs=6"});
  EXPECT_EQ(measured(result, name), 3 * (2 * 7 * 5 + 7 * 4) + 3 * 4 * 6 + 6);
  // The reference configuration of the convolution experiment: 9 heads as wide as their tokens.
  const lab::Result large = run_experiment("L10", {"heads=9", "inputs=400", "hidden=400", "values=400", "outputs=400"});
  EXPECT_EQ(measured(large, name), 9 * 3 * 160000 + 9 * 160000 + 400);
}

TEST(ParameterCounts, contradict_the_published_claim_for_equal_tokens_and_width) {
  EXPECT_EQ(run_experiment("L10", {"tokens=8", "width=8"}).verdict, lab::Verdict::corrected);
}

TEST(ParameterCounts, refuse_options_out_of_bounds) {
  expect_error<UsageError>([] { run_experiment("L10", {"heads=0"}); }, "heads");
}

}  // namespace
}  // namespace heed::test
