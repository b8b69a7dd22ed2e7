// L36, L37, L40 and L46 with few epochs: key numbers, and verdicts that are undecided.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(WhenPositionsMatter, without_positions_order_is_at_chance) {
  const lab::Result result = run_experiment("L36", {"sentences=60", "epochs=1", "seeds=2", "width=8", "images=50", "image_epochs=1"});
  EXPECT_NEAR(measured(result, "order, no positions: accuracy"), 0.5, 0.06);
  EXPECT_LE(measured(result, "numbers, no positions: accuracy"), 0.75);  // of 37 and 73 only one can be right
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("too few epochs"), std::string::npos);
  EXPECT_EQ(result.report.tables.at(0).rows.size(), 5u);
}

TEST(BlockParts, norms_scale_gradients_and_residuals_keep_tokens_apart) {
  const lab::Result result = run_experiment("L37", {"images=20", "epochs=1", "seeds=2", "width=16", "layers=1", "heads=2", "depth=12"});
  EXPECT_GT(measured(result, "no norms: gradient of the first block over the last, relative to the whole block's"), 10);
  EXPECT_LT(measured(result, "no residuals: spread of the tokens, relative to the whole block's"), 0.1);
  const auto& lines = std::get<lab::Lines>(result.report.figures.at(0).frames[0].plots[0].body);
  ASSERT_EQ(lines.series.size(), 4u);
  EXPECT_EQ(lines.series[0].y.size(), 12u);
  EXPECT_EQ(result.report.tables.at(0).rows.size(), 4u);
}

// Visible pairs in closed form: a window of w on each side of N tokens hides (N - w)(N - w - 1) pairs.
TEST(SparseVision, costs_match_the_visible_pairs) {
  const lab::Result result = run_untimed("L40", {"images=20", "epochs=1", "seeds=2", "width=16", "layers=1", "heads=2", "tokens=128",
                                                 "window=8", "globals=0", "step=4", "block=16", "rounds=1"});
  const std::string rest = ", 128 tokens: multiply-adds, 2 D for each visible pair";
  EXPECT_EQ(measured(result, "all pairs" + rest), 64 * 128 * 128);
  EXPECT_EQ(measured(result, "window and global tokens" + rest), 64 * (128 * 128 - 120 * 119));
  EXPECT_EQ(measured(result, "dilated" + rest), 64 * 128 * 32);
  EXPECT_EQ(measured(result, "block-sparse" + rest), 64 * (8 + 7) * 16 * 16);
  EXPECT_NE(result.report.undecided.find("little above chance"), std::string::npos);  // one epoch of 20 images
}

TEST(Overfitting, short_runs_are_undecided) {
  const lab::Result result = run_untimed("L46", {"images=40", "epochs=2", "seeds=2", "width=16", "layers=1", "heads=2"});
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("too short to overfit"), std::string::npos) << lab::finding_of(result.report);
  ASSERT_EQ(result.report.tables.at(0).rows.size(), 4u);
  ASSERT_EQ(result.report.figures.at(0).frames.size(), 4u);
  const auto& lines = std::get<lab::Lines>(result.report.figures[0].frames[0].plots[0].body);
  EXPECT_EQ(lines.series.at(1).y.size(), 2u);  // test loss after each epoch
}

}  // namespace
}  // namespace heed::test
