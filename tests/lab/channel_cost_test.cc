// L15: attention between patches and between channels.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(ChannelCost, is_twice_that_of_patches_for_the_image_of_the_claim) {
  const lab::Result result = run_experiment("L15", {"side=5", "channels=96", "groups=4", "least_side=12", "sides=3", "rounds=3"});
  EXPECT_EQ(measured(result, "16 x 16 patches of 512, between patches"), 2.0 * 256 * 256 * 512);   // 67.1 M
  EXPECT_EQ(measured(result, "16 x 16 patches of 512, between channels"), 2.0 * 256 * 512 * 512);  // 134.2 M
  EXPECT_EQ(measured(result, "between patches: 2 N² C"), 2 * 25 * 25 * 96);
  EXPECT_EQ(measured(result, "between patches, as many heads as groups"), 2 * 25 * 25 * 96);
  EXPECT_EQ(measured(result, "between channels: 2 N C²"), 2 * 25 * 96 * 96);
  EXPECT_EQ(measured(result, "between channels in 4 groups: 2 N C² / G"), 2 * 25 * 96 * 96 / 4);
}

TEST(ChannelCost, refuses_groups_that_do_not_divide_the_channels) {
  expect_error<UsageError>([] { run_experiment("L15", {"channels=100"}); }, "channel-cost: 100 channels in 8 groups");
}

}  // namespace
}  // namespace heed::test
