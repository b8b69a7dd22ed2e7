// L2: slopes of the change and of the remainder.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(NoisyKey, change_matches_the_first_order) {
  const lab::Result result = run_experiment("L2");
  EXPECT_NEAR(measured(result, "slope of the change on a log-log plot"), 1, 0.005);
  EXPECT_NEAR(measured(result, "slope of the remainder after the first order"), 2, 0.05);
  EXPECT_LT(measured(result, "derivative with respect to the key: relative distance from the formula"), 1e-5);
  EXPECT_GT(measured(result, "length of the change, β q·e about 0.01"), 1e-3);
}

TEST(NoisyKey, holds_for_other_sizes_seeds_and_temperatures) {
  for (const char* beta : {"beta=0.05", "beta=0.8"})
    run_experiment("noisy-key", {beta, "tokens=7", "width=9", "key=6", "noises=8", "seed=5"});
}

TEST(NoisyKey, large_noises_deviate_from_the_first_order) {
  const lab::Result result = run_experiment("L2", {"noises=4"});
  const auto& film = result.report.figures.at(1);
  ASSERT_EQ(film.frames.size(), 7u);
  const auto farthest = [&](size_t frame) {
    const lab::Series points = std::get<lab::Lines>(film.frames[frame].plots[0].body).series[0];
    double out = 0;
    for (size_t i = 0; i < points.x.size(); ++i) out = std::max(out, std::abs(points.y[i] - points.x[i]));
    return out;
  };
  EXPECT_LT(farthest(0), 0.05);
  EXPECT_GT(farthest(6), 5 * farthest(0));
}

TEST(NoisyKey, refuses_an_index_out_of_range) {
  expect_error<UsageError>([] { run_experiment("L2", {"tokens=4", "key=4"}); }, "key is 4, expected one of the 4 tokens");
}

}  // namespace
}  // namespace heed::test
