// L38, L45 and L47 on small budgets: numbers that do not depend on the budget, and verdicts that are undecided.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(OtherResolutions, flatten_is_refused_and_class_tokens_stay) {
  const lab::Result result = run_untimed("L38", {"images=40", "epochs=1", "seeds=2", "width=16", "layers=1", "heads=2"});
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_EQ(measured(result, "class token: change of its position"), 0);
  const auto rows = static_cast<double>(result.report.tables.at(0).rows.size());
  EXPECT_EQ(measured(result, "all tokens: sizes that are refused"), rows - 1);
  EXPECT_EQ(measured(result, "attention: change of accuracy at its own size"), 0);
}

// 9 heads whose centres are the 3 x 3 offsets cover all of them; the experiment starts from random centres.
TEST(OffsetsCovered, short_runs_are_undecided) {
  const lab::Result result = run_untimed("L45", {"images=60", "epochs=1", "seeds=2", "width=8", "layers=2"});
  const auto& table = result.report.tables.at(0);
  ASSERT_EQ(table.rows.size(), 2u);
  for (const auto& row : table.rows)
    for (size_t i = 1; i < row.size(); ++i) {
      EXPECT_GE(std::get<double>(row[i]), 0);
      EXPECT_LE(std::get<double>(row[i]), 1);
    }
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
}

TEST(HeadPruning, counts_the_heads_of_both_models) {
  const lab::Result result = run_untimed("L47", {"image_steps=2", "translation_steps=2", "seeds=2", "width=16", "layers=1", "heads=2"});
  EXPECT_EQ(result.report.tables.at(0).rows.size(), 2u);
  EXPECT_EQ(result.report.tables.at(1).rows.size(), 6u);  // one layer of the encoder, and two calls of the decoder
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("too short"), std::string::npos);
}

}  // namespace
}  // namespace heed::test
