// L14: the shapes of the two maps.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(TokenOrChannelMap, maps_between_tokens_are_smaller) {
  const lab::Result result = run_experiment("L14");
  EXPECT_EQ(result.verdict, lab::Verdict::corrected);
  EXPECT_EQ(measured(result, "entries of heed's map between tokens (N²)"), 36);
  EXPECT_EQ(measured(result, "entries of softmax(Q Kᵀ) (D²)"), 768 * 768);
  EXPECT_EQ(measured(result, "one more token: entries of the map between tokens"), 49);
  EXPECT_LT(measured(result, "softmax(Q Kᵀ) V: distance from heed's channel attention"), 1e-5);
  EXPECT_LT(measured(result, "V softmax(Qᵀ K)ᵀ: distance from heed's attention"), 1e-5);
  EXPECT_LT(measured(result, "permuted tokens: change of the map between channels"), 1e-6);
  EXPECT_EQ(std::get<double>(result.report.tables.at(0).rows.at(1).at(3)), 2.0 * 768 * 768 * 6);
}

TEST(TokenOrChannelMap, holds_for_other_shapes) { run_experiment("token-or-channel-map", {"width=20", "tokens=11", "seed=2"}); }

TEST(TokenOrChannelMap, fails_for_a_square_matrix) {
  const lab::Result result = run_experiment("L14", {"width=8", "tokens=8"});
  EXPECT_EQ(result.verdict, lab::Verdict::holds);  // the published number is then correct
  EXPECT_NE(lab::finding_of(result.report).find("both maps have the same shape"), std::string::npos);
  EXPECT_TRUE(result.as_documented());
}

}  // namespace
}  // namespace heed::test
