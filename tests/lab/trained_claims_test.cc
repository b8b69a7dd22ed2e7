// L36 and L46: what a run that is too short says, and that positions are out of reach without positions.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(WhenPositionsMatter, without_positions_order_is_a_coin_toss) {
  const lab::Result result = run_experiment("L36", {"sentences=60", "epochs=1", "seeds=2", "width=8", "images=50", "image_epochs=1"});
  EXPECT_NEAR(measured(result, "order, no positions: accuracy"), 0.5, 0.06);
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("too few epochs"), std::string::npos);
  EXPECT_EQ(result.report.tables.at(0).rows.size(), 3u);
}

TEST(Overfitting, a_short_run_says_so) {
  const lab::Result result = lab::run_one(
      lab::find_experiment("L46"), {"images=40", "epochs=2", "seeds=2", "width=16", "layers=1", "heads=2"}, [](const std::string&) {});
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("too short to overfit"), std::string::npos) << lab::finding_of(result.report);
  ASSERT_EQ(result.report.tables.at(0).rows.size(), 4u);
  ASSERT_EQ(result.report.figures.at(0).frames.size(), 4u);
  const auto& lines = std::get<lab::Lines>(result.report.figures[0].frames[0].plots[0].body);
  EXPECT_EQ(lines.series.at(1).y.size(), 2u);  // test loss after each epoch
}

}  // namespace
}  // namespace heed::test
