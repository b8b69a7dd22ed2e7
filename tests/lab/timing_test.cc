// Time measurements, each judged once and with wide bounds: other programs share the processor, its caches and the memory.
// ctest -LE timing leaves them out.
#include "tests/lab/lab.h"
#include "tests/sanitized.h"

namespace heed::test {
namespace {

// Four times the documented tolerance, and half or twice a limit.
lab::Measured widened(lab::Measured measured) {
  using Rule = lab::Measured::Rule;
  measured.tolerance *= 4;
  if (measured.rule == Rule::at_most) measured.predicted *= 2;
  if (measured.rule == Rule::at_least) measured.predicted /= 2;
  return measured;
}

void expect_times(const std::string& name, const std::vector<std::string>& settings) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take most of the time";
  const lab::Result result = lab::run_one(lab::find_experiment(name), settings, [](const std::string&) {});
  EXPECT_EQ(result.error, "");
  int found = 0;
  for (const lab::Measured& each : result.report.measured) {
    if (!each.by_clock) continue;
    ++found;
    EXPECT_TRUE(widened(each).passes()) << each.name << ": " << each.measured << ", expected " << widened(each).prediction();
  }
  EXPECT_GT(found, 0);
}

TEST(Timing, attention_cost) {
  expect_times("L11", {"width=48", "keys=20", "values=28", "least_tokens=192", "lengths=3", "most_heads=4", "head_tokens=65", "rounds=3"});
}
TEST(Timing, position_cost) { expect_times("L12", {"width=64", "least_side=6", "rounds=3"}); }
TEST(Timing, channel_cost) { expect_times("L15", {"side=5", "channels=96", "groups=4", "least_side=12", "sides=3", "rounds=3"}); }
TEST(Timing, new_token) { expect_times("L16", {"width=48", "heads=3", "least_tokens=100", "lengths=4", "rounds=3"}); }
TEST(Timing, cheaper_vision) {
  expect_times("L17", {"images=20", "epochs=1", "seeds=2", "width=16", "layers=2", "heads=2", "patch=4", "chunk=16", "side=48"});
}
TEST(Timing, kernel_cost) { expect_times("L18", {"width=32", "least_tokens=16", "lengths=8", "rounds=3"}); }

}  // namespace
}  // namespace heed::test
