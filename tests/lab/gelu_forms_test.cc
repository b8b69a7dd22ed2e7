// L26: the difference of the two forms of the GELU.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(GeluForms, differ_by_less_than_a_thousandth) {
  const lab::Result result = run_experiment("L26");
  EXPECT_NEAR(measured(result, "largest difference of the two"), 4.732e-4, 2e-6);
  EXPECT_NEAR(measured(result, "absolute value of x at the largest difference"), 2.699, 0.03);
  EXPECT_NEAR(measured(result, "largest difference below the exact form"), 2.337e-4, 2e-6);
  EXPECT_NEAR(measured(result, "largest difference of the slopes"), 8.68e-4, 2e-6);
  EXPECT_NEAR(measured(result, "x σ(1.702 x): error relative to that of the tanh form"), 42.97, 0.3);
  EXPECT_LT(measured(result, "relative change of the outputs of a feed-forward layer"), 3e-4);
}

TEST(GeluForms, hold_for_other_ranges_and_sizes) { run_experiment("L26", {"points=4001", "reach=20", "width=7", "tokens=3"}); }

}  // namespace
}  // namespace heed::test
