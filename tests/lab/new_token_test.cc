// L16: one more token with a KV cache and recomputed.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(NewToken, costs_one_projection_and_one_row) {
  const lab::Result result = run_experiment("L16", {"width=48", "heads=3", "least_tokens=100", "lengths=4", "rounds=3"});
  for (const double N : {100.0, 200.0, 400.0, 800.0}) {
    const std::string n = std::to_string(static_cast<int>(N));
    EXPECT_EQ(measured(result, "KV cache, N = " + n + ": 3D² + 2D(N+1)"), 3 * 48 * 48 + 2 * 48 * (N + 1));
    EXPECT_EQ(measured(result, "recomputed, N = " + n + ": 3D²(N+1) + D(N+1)(N+2)"), 3 * 48 * 48 * (N + 1) + 48 * (N + 1) * (N + 2));
  }
  EXPECT_LT(measured(result, "change of earlier outputs, relative to the largest"), 1e-6);
  EXPECT_LT(measured(result, "KV cache against recomputed: difference, relative to the largest"), 1e-6);
}

TEST(NewToken, refuses_widths_that_heads_do_not_divide) {
  expect_error<UsageError>([] { run_experiment("L16", {"heads=3"}); }, "new-token: a width of 128 in 3 heads");
}

}  // namespace
}  // namespace heed::test
