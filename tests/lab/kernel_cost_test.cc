// L18: linear attention in two orders.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(KernelCost, the_two_orders_agree_and_cost_the_same_at_the_crossover) {
  const lab::Result result = run_experiment("L18", {"width=32", "least_tokens=16", "lengths=8", "rounds=3"});
  EXPECT_EQ(measured(result, "sums first, N = 2048: N (2D² + D)"), 2048 * (2 * 32 * 32 + 32));
  EXPECT_EQ(measured(result, "map first, N = 2048: 2 N² D"), 2.0 * 2048 * 2048 * 32);
  EXPECT_LT(measured(result, "the two orders: difference, relative to the largest output"), 1e-5);
  EXPECT_LT(measured(result, "the two orders on small integers: difference"), 5e-7);
  EXPECT_NEAR(measured(result, "N with equal multiply-adds: (2D² + D) / 2D"), 32.5, 1e-4);
}

TEST(KernelCost, refuses_unknown_features) {
  expect_error<UsageError>([] { run_experiment("L18", {"features=elo"}); }, "features");
}

}  // namespace
}  // namespace heed::test
