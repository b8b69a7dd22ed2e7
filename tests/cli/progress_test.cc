#include "heed/cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace heed::cli {
namespace {

const ProgressState kHalfway{.epoch = 3,
                             .epochs = 10,
                             .step = 235,
                             .steps = 469,
                             .loss = 0.34567,
                             .accuracy = 0.8768,
                             .samples_per_second = 151234,
                             .seconds_left = 64.2};

TEST(Progress, live_line_has_everything) {
  EXPECT_EQ(live_line(kHalfway, 200),
            "epoch  3/10  [##########..........] 235/469  loss 0.3457  accuracy 87.7%  151234 samples/s  1:05 left");
}

TEST(Progress, live_line_fits_the_terminal) {
  EXPECT_EQ(live_line(kHalfway, 79), "epoch  3/10  235/469  loss 0.3457  accuracy 87.7%  151234 samples/s  1:05 left");
  EXPECT_EQ(live_line(kHalfway, 90).size(), 90u);
  EXPECT_EQ(live_line(kHalfway, 12), "epoch  3/10 ");
  EXPECT_EQ(live_line(kHalfway, 0), "");
}

TEST(Progress, times_are_readable) {
  EXPECT_EQ(readable_time(0), "0:00");
  EXPECT_EQ(readable_time(59.1), "1:00");
  EXPECT_EQ(readable_time(3599), "59:59");
  EXPECT_EQ(readable_time(3661), "1:01:01");
}

TEST(Progress, a_file_gets_one_line_per_epoch) {
  std::ostringstream out;
  {
    Progress progress(out, false, 80, 2, 2);
    progress.step(3, 1.0, 3);
    progress.step(1, 5.0, 0);
    progress.step(4, 0.5, 4);
    progress.step(4, 0.5, 4);
  }
  const std::string text = out.str();
  EXPECT_TRUE(text.starts_with("epoch 1/2  loss 2.0000  accuracy 75.0%  ")) << text;
  EXPECT_NE(text.find("\nepoch 2/2  loss 0.5000  accuracy 100.0%  "), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

}  // namespace
}  // namespace heed::cli
