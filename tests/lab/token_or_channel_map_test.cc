// L14: the shapes of the two maps.
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(TokenOrChannelMap, tokens_have_the_small_one) {
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

TEST(TokenOrChannelMap, other_shapes) { run_experiment("token-or-channel-map", {"width=20", "tokens=11", "seed=2"}); }

TEST(TokenOrChannelMap, a_square_matrix_cannot_distinguish_them) {
  const lab::Result result = lab::run_one(lab::find_experiment("L14"), {"width=8", "tokens=8"}, [](const std::string&) {});
  EXPECT_EQ(result.verdict, lab::Verdict::fails);  // the published number is then correct
}

}  // namespace
}  // namespace heed::test
