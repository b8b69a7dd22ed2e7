// L31: every pre-training variant is fine-tuned on the same two sets.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(PretrainingTasks, are_fine_tuned_on_two_sets) {
  const lab::Result result = run_untimed("L31", {"steps=2", "opinions=800", "epochs=1", "labelled=32", "seeds=2", "width=8", "layers=1",
                                                 "heads=1", "max_length=16", "tasks=inversion,inference"});
  ASSERT_EQ(result.report.tables.size(), 1u);
  EXPECT_EQ(result.report.tables[0].rows.size(), 3u);
  // Two steps are not enough to learn anything: accuracy is at chance for two classes and for six topics.
  const auto& bars = std::get<lab::Bars>(result.report.figures.at(0).frames[0].plots[0].body);
  ASSERT_EQ(bars.sets.size(), 2u);
  for (const double accuracy : bars.sets[0].values) EXPECT_LT(accuracy, 0.45);
  for (const double accuracy : bars.sets[1].values) EXPECT_NEAR(accuracy, 0.5, 0.1);
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(result.report.statement.find("Not above chance, so the run is too short to tell what it teaches: "), std::string::npos)
      << result.report.statement;
}

}  // namespace
}  // namespace heed::test
