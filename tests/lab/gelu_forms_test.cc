// L26: how far the two forms of the GELU are apart.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(GeluForms, differ_by_less_than_a_thousandth) {
  const lab::Result result = run_experiment("L26");
  EXPECT_NEAR(measured(result, "largest difference of the two"), 4.732e-4, 2e-6);
  EXPECT_NEAR(measured(result, "|x| where it is"), 2.699, 0.03);
  EXPECT_NEAR(measured(result, "how far the tanh form falls below"), 2.337e-4, 2e-6);
  EXPECT_NEAR(measured(result, "largest difference of the slopes"), 8.68e-4, 2e-6);
  EXPECT_NEAR(measured(result, "x σ(1.702 x): how many times further away"), 42.97, 0.3);
  EXPECT_LT(measured(result, "change of a feed-forward layer's outputs, as a share"), 3e-4);
}

TEST(GeluForms, of_few_points_and_a_wide_reach) { run_experiment("L26", {"points=4001", "reach=20", "width=7", "tokens=3"}); }

}  // namespace
}  // namespace heed::test
