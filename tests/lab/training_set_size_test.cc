// L39: both models are trained for the same steps on a set, and for more on a larger one.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(TrainingSetSize, both_models_learn_from_every_set) {
  const lab::Result result =
      run_untimed("L29", {"images=90", "sizes=2", "steps=3", "seeds=2", "width=16", "layers=1", "heads=2", "channels=2"});
  ASSERT_EQ(result.report.tables.size(), 2u);
  ASSERT_EQ(result.report.tables[0].rows.size(), 2u);
  EXPECT_EQ(std::get<double>(result.report.tables[0].rows[0][0]), 30);
  EXPECT_EQ(std::get<double>(result.report.tables[0].rows[1][0]), 90);
  EXPECT_EQ(std::get<double>(result.report.tables[0].rows[0][1]), 1);  // half of the steps, rounded down
  EXPECT_EQ(std::get<double>(result.report.tables[0].rows[1][1]), 3);
  // Parameters of the transformer by hand: 16 patches and a class token.
  const double layer = 4 * (256 + 16) + 2 * 16 * 64 + 64 + 16 + 64;
  EXPECT_EQ(std::get<double>(result.report.tables[1].rows[1][1]), 16 * 193 + 17 * 16 + 16 + layer + 32 + 170);
  EXPECT_EQ(result.experiment->number, "L39");
  // Three steps are not enough to learn anything, and the text says so with the numbers.
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("images (3 steps). "), std::string::npos);
  EXPECT_EQ(std::get<lab::Lines>(result.report.figures.at(0).frames[0].plots[0].body).series.size(), 2u);
}

}  // namespace
}  // namespace heed::test
