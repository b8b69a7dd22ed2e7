// L1: the effect of the temperature.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(SoftmaxTemperature, goes_from_the_mean_to_one_value) {
  const lab::Result result = run_experiment("L1");
  EXPECT_NEAR(measured(result, "entropy at β = 0 (log N)"), std::log(16), 1e-5);
  EXPECT_LT(measured(result, "entropy at the largest β"), 1e-6);
  EXPECT_LT(measured(result, "β = 0: distance from the mean of the values"), 1e-6);
  EXPECT_LT(measured(result, "largest β: distance from the best key's value"), 1e-6);
  EXPECT_EQ(measured(result, "hard attention: distance from the best key's value"), 0);
}

TEST(SoftmaxTemperature, holds_for_other_sizes_and_seeds) {
  EXPECT_NEAR(measured(run_experiment("L1", {"tokens=37", "width=5", "seed=9"}), "entropy at β = 0 (log N)"), std::log(37), 1e-5);
}

TEST(SoftmaxTemperature, does_not_hold_for_small_beta) {
  const lab::Result result = lab::run_one(lab::find_experiment("softmax-temperature"), {"beta=1"}, [](const std::string&) {});
  EXPECT_EQ(result.verdict, lab::Verdict::fails);
  EXPECT_FALSE(result.as_documented());
  EXPECT_GT(measured(result, "entropy at the largest β"), 0.1);
}

}  // namespace
}  // namespace heed::test
