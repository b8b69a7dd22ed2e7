// L17: multiply-adds of cheaper models against formulas.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(CheaperVision, costs_match_the_formulas) {
  const lab::Result result =
      run_untimed("L17", {"images=20", "epochs=1", "seeds=2", "width=16", "layers=2", "heads=2", "patch=4", "chunk=16", "side=48"});
  // 64 patches of 48 numbers, width 16, ten classes; two layers.
  const int64_t rest = 64 * 16 * 48 + 160 + 2 * 64 * 12 * 256;
  EXPECT_EQ(measured(result, "all pairs: multiply-adds per image"), rest + 2 * 2 * 64 * 64 * 16);
  EXPECT_EQ(measured(result, "every token alone: multiply-adds per image"), rest + 2 * 2 * 64 * 16);
  EXPECT_EQ(measured(result, "square windows: multiply-adds per image"), rest + 2 * 2 * 22 * 22 * 16);
  EXPECT_EQ(measured(result, "shifted chunks: multiply-adds per image"), rest + 2 * (64 * 16 + 3 * 256 + 2 * 64) * 16);
  EXPECT_EQ(measured(result, "pooled keys: multiply-adds per image"), rest + 2 * 2 * 64 * 16 * 16);
  EXPECT_EQ(measured(result, "channels: multiply-adds per image"), rest + 2 * 2 * 64 * 128);
  EXPECT_EQ(measured(result, "larger patches: multiply-adds per image"), 16 * 16 * 192 + 160 + 2 * (16 * 12 * 256 + 2 * 256 * 16));
  EXPECT_NEAR(measured(result, "square windows: exponent of multiply-adds in tokens"), 1, 0.05);
  EXPECT_NEAR(measured(result, "all pairs: exponent of multiply-adds in tokens"), 2, 1e-9);
  // One epoch of 20 images is not enough to learn anything, and the text says so. It claims a lower cost only for models that have one.
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("Attention has not helped yet"), std::string::npos);
  EXPECT_NE(result.report.statement.find("larger patches (0.2327)"), std::string::npos) << result.report.statement;
}

TEST(CheaperVision, the_text_claims_savings_only_for_cheaper_models) {
  const lab::Result result =
      run_untimed("L17", {"images=20", "epochs=1", "seeds=2", "width=32", "layers=1", "heads=2", "patch=8", "side=32"});
  const std::string& text = result.report.statement;
  const size_t not_cheaper = text.find("Within 5 % of all pairs at this size: ");
  ASSERT_NE(not_cheaper, std::string::npos) << text;
  EXPECT_LT(text.find("larger patches (0."), not_cheaper);
  EXPECT_GT(text.find("pooled keys (0.9"), not_cheaper);
}

TEST(CheaperVision, refuses_chunks_that_do_not_divide) {
  expect_error<UsageError>([] { run_experiment("L17", {"chunk=5"}); }, "chunk=5");
}

}  // namespace
}  // namespace heed::test
