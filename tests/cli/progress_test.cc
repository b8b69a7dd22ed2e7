#include "heed/cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace heed::cli {
namespace {

const StepDone kHalfway{.epoch = 3,
                        .epochs = 10,
                        .step = 235,
                        .steps = 469,
                        .means = {{"loss", 0.34567}, {"accuracy", 0.8768}},
                        .rate = 0.000987,
                        .samples_per_second = 151234,
                        .share_of_peak = 0.451,
                        .seconds_left = 64.2};

TEST(Progress, live_line_has_everything) {
  EXPECT_EQ(
      live_line(kHalfway, 200),
      "epoch  3/10  [##########..........] 235/469  loss 0.3457  accuracy 87.7%  rate 0.00099  151234 samples/s  45% of peak  1:05 left");
}

TEST(Progress, live_line_keeps_what_matters_on_a_narrow_terminal) {
  EXPECT_EQ(live_line(kHalfway, 119),
            "epoch  3/10  [#####......] 235/469  loss 0.3457  accuracy 87.7%  rate 0.00099  151234 samples/s  45% of peak  1:05 left");
  EXPECT_EQ(live_line(kHalfway, 108),
            "epoch  3/10  235/469  loss 0.3457  accuracy 87.7%  rate 0.00099  151234 samples/s  45% of peak  1:05 left");
  EXPECT_EQ(live_line(kHalfway, 94), "epoch  3/10  235/469  loss 0.3457  accuracy 87.7%  rate 0.00099  151234 samples/s  1:05 left");
  EXPECT_EQ(live_line(kHalfway, 79), "epoch  3/10  235/469  loss 0.3457  accuracy 87.7%  151234 samples/s  1:05 left");
  EXPECT_EQ(live_line(kHalfway, 62), "epoch  3/10  235/469  loss 0.3457  accuracy 87.7%  1:05 left");
  EXPECT_EQ(live_line(kHalfway, 12), "epoch  3/10 ");
  for (int width = 0; width < 150; ++width) EXPECT_LE(std::ssize(live_line(kHalfway, width)), width);
}

TEST(Progress, times_are_readable) {
  EXPECT_EQ(readable_time(0), "0:00");
  EXPECT_EQ(readable_time(59.1), "1:00");
  EXPECT_EQ(readable_time(3599), "59:59");
  EXPECT_EQ(readable_time(3661), "1:01:01");
}

const EpochDone kFirst{
    .epoch = 1,
    .epochs = 2,
    .step = 4,
    .figures = {{"train_loss", 2}, {"train_accuracy", 0.75}, {"validation_perplexity", 123.456}, {"validation_f1", 0.5}, {"rate", 1e-3}},
    .best = true,
    .seconds = 3,
    .samples_per_second = 7.25,
    .share_of_peak = 0.3};

TEST(Progress, a_file_gets_one_line_per_epoch) {
  std::ostringstream out;
  {
    Progress progress(out, false, 80);
    progress.step(kHalfway);
    progress.epoch(kFirst);
    progress.step(kHalfway);
    progress.say("done");
  }
  EXPECT_EQ(out.str(),
            "epoch 1/2  train loss 2.0000, accuracy 75.0%  validation perplexity 123.5, f1 50.0%  7.2 samples/s  30% of peak  0:03  best\n"
            "done\n");
}

TEST(Progress, a_terminal_has_a_live_line_that_lasting_ones_replace) {
  std::ostringstream out;
  {
    Progress progress(out, true, 40);
    progress.step(kHalfway);
    progress.step(kHalfway);  // too soon to be drawn again
    progress.say("done");
    EXPECT_EQ(out.str(), "\r" + live_line(kHalfway, 40) + "\x1b[K\r\x1b[Kdone\n");
  }
  EXPECT_TRUE(out.str().ends_with("done\n"));  // nothing is left to erase
}

}  // namespace
}  // namespace heed::cli
