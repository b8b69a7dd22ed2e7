#include "heed/cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace heed::cli {
namespace {

const StepInfo kHalfway{.epoch = 3,
                        .epochs = 10,
                        .step = 235,
                        .steps = 469,
                        .means = {{"loss", 0.34567}, {"accuracy", 0.8768}},
                        .rate = 0.000987,
                        .samples_per_second = 151234,
                        .share_of_peak = 0.451,
                        .seconds_left = 64.2};

TEST(Progress, live_line_has_all_values) {
  EXPECT_EQ(
      live_line(kHalfway, 200),
      "epoch  3/10  [##########..........] 235/469  loss 0.3457  accuracy 87.7%  rate 0.00099  151234 samples/s  45% of peak  1:05 left");
}

TEST(Progress, live_line_is_shortened_on_narrow_terminals) {
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

const EpochInfo kFirst{
    .epoch = 1,
    .epochs = 2,
    .step = 4,
    .figures = {{"train_loss", 2}, {"train_accuracy", 0.75}, {"validation_perplexity", 123.456}, {"validation_f1", 0.5}, {"rate", 1e-3}},
    .best = true,
    .seconds = 3,
    .samples_per_second = 7.25,
    .share_of_peak = 0.3};

TEST(Progress, epoch_lines_are_shortened_to_the_width) {
  EXPECT_EQ(epoch_line(kFirst, 200),
            "epoch 1/2  loss 2.0000  accuracy 75.0%  val perplexity 123.5  val f1 50.0%  7.2/s  30% of peak  0:03  best");
  EXPECT_EQ(epoch_line(kFirst, 80), "epoch 1/2  loss 2.0000  accuracy 75.0%  val perplexity 123.5  7.2/s  0:03  best");
  EXPECT_EQ(epoch_line(kFirst, 50), "epoch 1/2  loss 2.0000  accuracy 75.0%  0:03  best");
  EXPECT_EQ(epoch_line(kFirst, 50, true), "epoch 1/2  loss 2.0000  accuracy 75.0%  0:03  \x1b[32mbest\x1b[0m");
  const EpochInfo demo{.epoch = 3,
                       .epochs = 5,
                       .step = 4,
                       .figures = {{"train_loss", 0.692},
                                   {"train_accuracy", 0.754},
                                   {"validation_loss", 0.5551},
                                   {"validation_accuracy", 0.795},
                                   {"validation_top5", 0.99},
                                   {"validation_calibration_error", 0.02}},
                       .best = true,
                       .seconds = 53,
                       .samples_per_second = 1103,
                       .share_of_peak = 0.87};
  EXPECT_EQ(epoch_line(demo), "epoch 3/5  loss 0.6920 val 0.5551  accuracy 75.4% val 79.5%  1103/s  0:53  best");
  for (int width = 45; width < 150; ++width) EXPECT_LE(std::ssize(epoch_line(demo, width)), width);
}

TEST(Progress, files_get_one_line_per_epoch) {
  std::ostringstream out;
  {
    Progress progress(out, {});
    progress.step(kHalfway);
    progress.epoch(kFirst);
    progress.step(kHalfway);
    progress.say("done");
  }
  EXPECT_EQ(out.str(), epoch_line(kFirst, 80) + "\ndone\n");
}

TEST(Progress, permanent_lines_replace_the_live_line_of_a_terminal) {
  std::ostringstream out;
  {
    Progress progress(out, {.live = true, .width = [] { return 40; }});
    progress.step(kHalfway);
    progress.step(kHalfway);  // too soon to be drawn again
    progress.say("done");
    EXPECT_EQ(out.str(), "\r" + live_line(kHalfway, 40) + "\x1b[K\r\x1b[Kdone\n");
  }
  EXPECT_TRUE(out.str().ends_with("done\n"));  // nothing left to erase
}

}  // namespace
}  // namespace heed::cli
