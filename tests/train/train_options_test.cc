// Learning rate schedules and training settings.
#include "heed/train/train_options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/expect_error.h"

namespace heed::test {
namespace {

TEST(TrainOptions, every_schedule_warms_up) {
  for (const char* schedule : {"cosine", "inverse_sqrt", "step", "constant", "linear"}) {
    TrainOptions options{.rate = 0.5f, .schedule = schedule, .warmup = 0.1f, .final_rate = 0.2f};
    options.step_every = 50;
    for (const int64_t step : {0, 3, 9}) EXPECT_NEAR(rate_at(options, step, 100), 0.5 * static_cast<double>(step + 1) / 10, 1e-12);
    options.warmup = 10;  // the same in steps
    EXPECT_NEAR(rate_at(options, 4, 100), 0.25, 1e-12);
    EXPECT_LE(rate_at(options, 10, 100), 0.5) << schedule;
    options.warmup = 0;
    EXPECT_NEAR(rate_at(options, 0, 100), 0.5, 1e-12) << schedule;
    for (int64_t step = 1; step < 100; ++step) EXPECT_LE(rate_at(options, step, 100), rate_at(options, step - 1, 100)) << schedule;
  }
}

TEST(TrainOptions, schedules_are_their_formulas) {
  TrainOptions options{.rate = 2, .schedule = "cosine", .warmup = 20, .final_rate = 0.25f};
  EXPECT_NEAR(rate_at(options, 20, 120), 2, 1e-12);
  EXPECT_NEAR(rate_at(options, 70, 120), 2 * (0.25 + 0.75 / 2), 1e-12);  // half way: cos = 0
  EXPECT_NEAR(rate_at(options, 45, 120), 2 * (0.25 + 0.75 * (1 + std::sqrt(0.5)) / 2), 1e-12);
  options.schedule = "linear";
  EXPECT_NEAR(rate_at(options, 70, 120), 2 * (1 - 0.75 * 0.5), 1e-12);
  options.schedule = "constant";
  EXPECT_EQ(rate_at(options, 119, 120), 2);
  options.schedule = "inverse_sqrt";
  EXPECT_NEAR(rate_at(options, 79, 120), 1, 1e-12);  // sqrt(20 / 80)
  EXPECT_NEAR(rate_at(options, 9999, 10000), 0.5, 1e-12);
  // Vaswani et al.: d^-0.5 min(s^-0.5, s w^-1.5)
  const TrainOptions original{.rate = static_cast<float>(1 / std::sqrt(512.0 * 4000)), .schedule = "inverse_sqrt", .warmup = 4000};
  for (const double s : {1.0, 100.0, 4000.0, 4001.0, 90000.0})
    EXPECT_NEAR(
        rate_at(original, static_cast<int64_t>(s) - 1, 100000) * std::sqrt(512.0) / std::min(1 / std::sqrt(s), s / std::pow(4000, 1.5)), 1,
        1e-6);
  options = {.rate = 1, .schedule = "step", .warmup = 0, .step_every = 0.25f, .step_factor = 0.5f};
  for (const auto& [step, expected] : std::vector<std::pair<int64_t, double>>{{0, 1}, {24, 1}, {25, 0.5}, {74, 0.25}, {99, 0.125}})
    EXPECT_EQ(rate_at(options, step, 100), expected) << step;
  options.step_every = 10;
  EXPECT_EQ(rate_at(options, 20, 100), 0.25);
  options.final_rate = 0.2f;
  EXPECT_NEAR(rate_at(options, 99, 100), 0.2, 1e-7);
}

TEST(TrainOptions, short_runs_have_rates_too) {
  for (const char* schedule : {"cosine", "inverse_sqrt", "step", "constant", "linear"})
    for (const float warmup : {0.0f, 0.05f, 0.9f, 1.0f, 50.0f})
      for (int64_t all = 1; all < 5; ++all)
        for (int64_t step = 0; step < all; ++step) {
          const double rate = rate_at({.rate = 1, .schedule = schedule, .warmup = warmup}, step, all);
          EXPECT_TRUE(rate > 0 && rate <= 1) << schedule << " " << warmup << " " << step << " of " << all;
        }
  expect_error([] { rate_at({}, 5, 5); }, "rate: step 5 of 5");
  expect_error([] { rate_at({.schedule = "exponential"}, 4, 5); }, "rate: found the schedule 'exponential'");
}

TEST(TrainOptions, every_option_has_a_setting) {
  TrainOptions options;
  Settings settings;
  declare(settings, options);
  for (const char* word : {"epochs=2",
                           "steps=3",
                           "batch=4",
                           "accumulate=5",
                           "optimizer=sgd",
                           "rate=0.5",
                           "momentum=0.25",
                           "beta1=0.5",
                           "beta2=0.75",
                           "weight_decay=0.125",
                           "schedule=step",
                           "warmup=7",
                           "final_rate=0.25",
                           "step_every=8",
                           "step_factor=0.5",
                           "clip=0",
                           "label_smoothing=0.5",
                           "average=0.75",
                           "patience=9",
                           "best=loss",
                           "validation=0.25",
                           "on_nan=skip",
                           "seed=11",
                           "log_every=12",
                           "save_every=13",
                           "loaders=0"})
    settings.assign(word);
  EXPECT_TRUE(options.epochs == 2 && options.steps == 3 && options.batch == 4 && options.accumulate == 5 && options.optimizer == "sgd");
  EXPECT_TRUE(options.rate == 0.5f && options.momentum == 0.25f && options.beta1 == 0.5f && options.beta2 == 0.75f);
  EXPECT_TRUE(options.weight_decay == 0.125f && options.schedule == "step" && options.warmup == 7 && options.final_rate == 0.25f);
  EXPECT_TRUE(options.step_every == 8 && options.step_factor == 0.5f && options.clip == 0 && options.label_smoothing == 0.5f);
  EXPECT_TRUE(options.average == 0.75f && options.patience == 9 && options.best == "loss" && options.validation == 0.25f);
  EXPECT_TRUE(options.on_nan == "skip" && options.seed == 11 && options.log_every == 12 && options.save_every == 13 &&
              options.loaders == 0);
  expect_error<UsageError>([&] { settings.assign("optimizer=adamv"); }, "expected one of sgd, adam, adamw; did you mean 'adam'?");
  expect_error<UsageError>([&] { settings.assign("momentum=1"); }, "train: momentum=1, expected 0 to ");
  expect_error<UsageError>([&] { settings.assign("batch=0"); }, "train: batch=0, expected 1 or more");
}

TEST(TrainOptions, bf16_is_rejected_where_it_would_be_slower) {
  TrainOptions options;
  check_precision(options, false);
  options.precision = "bf16";
  check_precision(options, true);
  expect_error<UsageError>([&] { check_precision(options, false); },
                           "train: precision=bf16, but this CPU has no bf16 instructions (AVX-512 BF16 or AMX), expected precision=f32");
}

}  // namespace
}  // namespace heed::test
