// L28: parameters and costs of the four heads.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(PoolingHeads, parameters_and_costs_match_the_formulas) {
  const lab::Result result = run_untimed("L28", {"images=20", "epochs=1", "seeds=2", "width=16", "layers=1", "heads=2"});
  // 16 patches of 192 numbers, width 16, feed-forward width 64, ten classes.
  const int64_t layer = 4 * (256 + 16) + 2 * 16 * 64 + 64 + 16 + 64, rest = 16 * 193 + 16 * 16 + layer + 32;
  EXPECT_EQ(measured(result, "gap: parameters"), rest + 170);
  EXPECT_EQ(measured(result, "cls: parameters"), rest + 170 + 32);
  EXPECT_EQ(measured(result, "flatten: parameters"), rest + 2570);
  EXPECT_EQ(measured(result, "map: parameters"), rest + 170 + 16 + layer - 32);
  EXPECT_EQ(measured(result, "gap: multiply-adds per image"), 16 * 16 * 192 + 16 * 3072 + 2 * 256 * 16 + 160);
  for (const lab::Measured& each : result.report.measured)
    if (each.rule == lab::Measured::Rule::distance) {
      EXPECT_TRUE(each.passes()) << each.name;
    }
  EXPECT_EQ(result.report.tables.at(0).rows.size(), 4u);
  EXPECT_EQ(result.report.tables.at(1).rows.size(), 6u);
  // One epoch of 20 images is not enough to decide; the order is given with its numbers.
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("Mean test accuracy over the first 1 of 1 epochs: "), std::string::npos);
  EXPECT_EQ(std::get<lab::Lines>(result.report.figures.at(1).frames[0].plots[0].body).series.size(), 4u);
}

}  // namespace
}  // namespace heed::test
