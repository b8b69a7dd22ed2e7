// L21: edges are replicated; one ring of zeros gives zero padding.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(ConvolutionBorders, are_replicated_unless_there_is_a_ring_of_zeros) {
  const lab::Result result = run_experiment("L21");
  EXPECT_EQ(result.verdict, lab::Verdict::corrected);
  for (const std::string K : {"3", "5", "7"}) {
    const std::string kernel = K + " × " + K;
    EXPECT_LT(measured(result, kernel + ", replicated edges: error inside"), 1e-5);
    EXPECT_LT(measured(result, kernel + ", replicated edges: error at the border"), 1e-5);
    EXPECT_GT(measured(result, kernel + ", zero padding, no zeros around the input: error at the border"), 0.05);
    EXPECT_LT(measured(result, kernel + ", zero padding, 1 ring: error"), 1e-5);
    EXPECT_EQ(measured(result, kernel + ": required rings of zeros"), 1);
  }
  EXPECT_LT(measured(result, "7 × 7, zero padding, 3 rings: error"), 1e-5);
}

TEST(ConvolutionBorders, heads_that_blur_are_undecided) {
  const lab::Result result = run_experiment("L21", {"alpha=3"});
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_TRUE(result.as_documented());
  EXPECT_NE(lab::finding_of(result.report).find("At α = 3 the heads still blur"), std::string::npos);
  for (const lab::Measured& each : result.report.measured) EXPECT_EQ(each.name.find("rings"), std::string::npos);
  for (const auto& row : result.report.tables.at(0).rows) EXPECT_GT(std::get<double>(row[3]), 0.05);  // error inside
  EXPECT_NEAR(measured(result, "error inside, α = 2 to 8: exponent of e^α"), -1, 0.15);
}

TEST(ConvolutionBorders, dilated_kernels_also_need_one_ring_of_zeros) {
  EXPECT_EQ(measured(run_experiment("L21", {"dilation=3", "kernels=2", "side=16"}), "5 × 5: required rings of zeros"), 1);
}

}  // namespace
}  // namespace heed::test
