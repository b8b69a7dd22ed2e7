// L12: scores with absolute and with Gaussian positions.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(PositionCost, counts_match_the_formulas_and_maps_agree) {
  const lab::Result result = run_experiment("L12", {"width=64", "least_side=6", "rounds=3"});
  for (const double side : {6.0, 12.0, 24.0}) {
    const double N = side * side;
    const std::string name = "N = " + std::to_string(static_cast<int>(N)) + ": ";
    EXPECT_EQ(measured(result, name + "absolute scores, N D² + N² D"), N * 64 * 64 + N * N * 64);
    EXPECT_EQ(measured(result, name + "Gaussian scores, N² D_p"), 3 * N * N);
    EXPECT_EQ(measured(result, name + "full Gaussian attention, 2 N D √N"), 2 * N * 64 * side);
  }
  EXPECT_LT(measured(result, "softmax of the three-number scores against the term's map: difference"), 1e-5);
}

}  // namespace
}  // namespace heed::test
