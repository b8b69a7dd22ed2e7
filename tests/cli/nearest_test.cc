#include "heed/core/nearest.h"

#include <gtest/gtest.h>

namespace heed::test {
namespace {

TEST(Nearest, edit_distance_counts_changed_letters) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("demo", "dmeo"), 1u);
  EXPECT_EQ(edit_distance("demo", "meod"), 3u);
}

TEST(Nearest, suggests_only_similar_names) {
  const std::vector<std::string> names = {"demo", "train", "predict"};
  EXPECT_EQ(nearest("dem", names), "demo");
  EXPECT_EQ(nearest("trains", names), "train");
  EXPECT_EQ(nearest("pridect", names), "predict");
  EXPECT_EQ(nearest("edmo", names), "demo");
  EXPECT_EQ(nearest("serve", names), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(did_you_mean("dem", names), "; did you mean 'demo'?");
  EXPECT_EQ(did_you_mean("quantise", names), "");
}

}  // namespace
}  // namespace heed::test
