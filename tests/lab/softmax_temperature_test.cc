// L1: the effect of the temperature.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(SoftmaxTemperature, ranges_from_the_mean_to_one_value) {
  const lab::Result result = run_experiment("L1");
  EXPECT_NEAR(measured(result, "entropy at β = 0 (log N)"), std::log(16), 1e-5);
  EXPECT_LT(measured(result, "entropy in the limit"), 1e-6);
  EXPECT_LT(measured(result, "β = 0: distance from the mean of the values"), 1e-6);
  EXPECT_LT(measured(result, "limit: distance from the best key's value"), 1e-6);
  EXPECT_EQ(measured(result, "hard attention: distance from the best key's value"), 0);
}

TEST(SoftmaxTemperature, holds_for_other_sizes_and_seeds) {
  EXPECT_NEAR(measured(run_experiment("L1", {"tokens=37", "width=5", "seed=9"}), "entropy at β = 0 (log N)"), std::log(37), 1e-5);
}

TEST(SoftmaxTemperature, the_text_gives_the_entropy_at_the_chosen_beta) {
  const lab::Result result = run_experiment("L1", {"beta=5"});
  EXPECT_NEAR(measured(result, "entropy at the largest β, below log N"), 0.1375, 1e-3);
  EXPECT_LT(measured(result, "entropy in the limit"), 1e-6);
  EXPECT_NE(result.report.statement.find("to 0.1375 at β = 5. The limit is 0"), std::string::npos) << result.report.statement;
}

}  // namespace
}  // namespace heed::test
