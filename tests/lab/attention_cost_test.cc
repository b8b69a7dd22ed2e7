// L11: multiply-adds as counted by the ops.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(AttentionCost, counts_match_the_formula) {
  const lab::Result result = run_experiment(
      "L11", {"width=48", "keys=20", "values=28", "least_tokens=192", "lengths=3", "most_heads=4", "head_tokens=65", "rounds=3"});
  for (const double n : {192.0, 384.0, 768.0})
    EXPECT_EQ(measured(result, "multiply-adds, n = " + std::to_string(static_cast<int>(n))), n * 48 * (2 * 20 + 28) + n * n * (20 + 28));
  for (const char* heads : {"1 head", "2 heads", "4 heads"}) {
    EXPECT_EQ(measured(result, std::string(heads) + ": multiply-adds"), 65 * 48 * 3 * 48 + 65 * 65 * 2 * 48);
    EXPECT_EQ(measured(result, std::string(heads) + ": parameters"), 3 * (48 * 48 + 48));
  }
}

TEST(AttentionCost, refuses_widths_that_heads_do_not_divide) {
  expect_error<UsageError>([] { run_experiment("L11", {"width=50"}); }, "attention-cost: a width of 50 in 16 heads");
}

}  // namespace
}  // namespace heed::test
