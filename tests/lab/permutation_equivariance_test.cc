// L13: which layers depend on the order of tokens.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(PermutationEquivariance, holds_without_positions_only) {
  const lab::Result result = run_experiment("L13", {"permutations=5"});
  for (const char* kind : {"soft", "hard", "linear", "channel"})
    EXPECT_LT(measured(result, std::string(kind) + " attention: distance"), 2e-6) << kind;
  EXPECT_LT(measured(result, "soft attention, all 120 permutations of 5 tokens: distance"), 2e-6);
  EXPECT_LT(measured(result, "cross-attention, keys in another order: change"), 2e-6);
  for (const char* name : {"sinusoidal", "learned", "rotary", "relative table", "relative content", "Gaussian on a grid", "causal mask"})
    EXPECT_GT(measured(result, std::string(name) + ": distance"), 0.2) << name;
  EXPECT_GT(measured(result, "slopes of distance (ALiBi): distance"), 0.05);
  EXPECT_LT(measured(result, "slopes of distance (ALiBi): distance under reversal"), 2e-6);
}

TEST(PermutationEquivariance, holds_for_other_sizes_and_seeds) {
  run_experiment("permutation-equivariance", {"rows=2", "width=24", "heads=3", "permutations=3", "seed=11", "strength=1"});
  expect_error<UsageError>([] { run_experiment("L13", {"width=12", "heads=4"}); }, "width is 12 and heads 4");
}

TEST(PermutationEquivariance, the_animation_starts_without_a_difference) {
  const lab::Result result = run_experiment("L13", {"permutations=1"});
  const auto difference = [&](size_t frame) {
    double out = 0;
    for (double value : std::get<lab::HeatMap>(result.report.figures.at(1).frames.at(frame).plots.at(2).body).values)
      out = std::max(out, std::abs(value));
    return out;
  };
  EXPECT_LT(difference(0), 1e-6);
  EXPECT_GT(difference(8), 0.1);
}

}  // namespace
}  // namespace heed::test
