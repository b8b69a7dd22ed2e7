// The loop that every task goes through.
#include <cmath>

#include "heed/core/parallel.h"
#include "tests/train/toy.h"

namespace heed::test {
namespace {

int64_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Fit, learns_and_leaves_its_files) {
  const Folder folder;
  ToyRun run(folder);
  const LearnOptions options = quick();
  const Task task = toy(options);
  std::vector<EpochDone> epochs;
  int64_t steps = 0;
  const FitResult result = fit(task, options, run.run,
                               {.step =
                                    [&](const StepDone& step) {
                                      EXPECT_EQ(step.all_step, ++steps);
                                      EXPECT_EQ(step.all_steps, 15);
                                      EXPECT_EQ(step.step, (steps - 1) % 5 + 1);
                                      EXPECT_GT(step.gradient_norm, 0);
                                    },
                                .epoch = [&](const EpochDone& epoch) { epochs.push_back(epoch); }});
  EXPECT_EQ(result.ending, Ending::complete);
  EXPECT_EQ(result.steps, 15);
  ASSERT_EQ(epochs.size(), 3u);
  EXPECT_LT(epochs[2].figures[0].second, epochs[0].figures[0].second);
  EXPECT_GT(result.best, 0.6);
  const Left left = left_in(run.path);
  EXPECT_TRUE(left.csv.starts_with("epoch,step,train_loss,train_accuracy,validation_loss,validation_accuracy,rate\n1,5,")) << left.csv;
  EXPECT_EQ(lines_in(left.csv), 4);
  EXPECT_EQ(lines_in(left.jsonl), 3 + 7);
  EXPECT_EQ(weights_of(load(run.path / "last")), weights_of(*task.model));
}

TEST(Fit, the_best_epoch_is_kept_and_patience_ends_the_run) {
  const Folder folder;
  LearnOptions options = quick();
  options.epochs = 9;
  options.patience = 2;
  Task task = toy(options);
  const std::vector<double> scripted{std::nan(""), 0.5, 0.7, 0.7, 0.6, 0.9};
  size_t asked = 0;
  task.evaluate = [&] { return Evaluation{.figures = {{"accuracy", scripted.at(asked++)}}}; };
  std::vector<std::vector<float>> weights;
  std::vector<bool> best;
  const Watch watch{.epoch = [&](const EpochDone& epoch) {
    weights.push_back(weights_of(*task.model));
    best.push_back(epoch.best);
  }};
  const auto fitted = [&](const Task& chosen) {
    ToyRun run(folder);
    return fit(chosen, options, run.run, watch);
  };
  const FitResult result = fitted(task);
  EXPECT_EQ(result.ending, Ending::patience);
  EXPECT_EQ(result.epochs, 5);
  EXPECT_EQ(result.best_epoch, 3);
  EXPECT_EQ(result.best, 0.7);
  EXPECT_EQ(best, (std::vector<bool>{true, true, true, false, false}));
  EXPECT_EQ(weights_of(load(folder / "toy/run/best")), weights[2]);
  EXPECT_EQ(weights_of(load(folder / "toy/run/last")), weights[4]);
  // A run that is over stays as it is.
  EXPECT_EQ(fitted(toy(options)).best_epoch, 3);
}

// Ctrl-C while a model is evaluated: the evaluation ends in its middle, and a run that goes on begins with it.
TEST(Fit, an_evaluation_can_be_interrupted_and_is_made_again) {
  const Folder folder, peaceful;
  LearnOptions options = quick();
  options.average = 0.9f;
  ToyRun whole(peaceful);
  fit(toy(options), options, whole.run);
  const Left expected = left_in(whole.path);
  {
    ToyRun run(folder);
    Task task = toy(options);
    bool asked = false;
    int64_t epochs = 0;
    task.evaluate = [&, judge = task.evaluate] {
      if (epochs == 1) asked = true;
      const Tensor x = Tensor::zeros({64, 64});
      for (int i = 0; asked; ++i) {
        if (i == 100'000) ADD_FAILURE() << "nobody interrupted it";
        if (i == 100'000) break;
        matmul(x, x);
      }
      return judge();
    };
    const FitResult result = fit(task, options, run.run, {.epoch = [&](const EpochDone&) { ++epochs; }, .stop = [&] { return asked; }});
    EXPECT_EQ(result.ending, Ending::stopped);
    EXPECT_EQ(result.steps, 10);
    EXPECT_EQ(epochs, 1);
  }
  ToyRun run(folder);
  EXPECT_EQ(fit(toy(options), options, run.run).ending, Ending::complete);
  const Left left = left_in(run.path);
  EXPECT_EQ(left.csv, expected.csv);
  EXPECT_EQ(left.jsonl, expected.jsonl);
  EXPECT_EQ(weights_of(load(run.path / "best")), weights_of(load(whole.path / "best")));
}

TEST(Fit, smaller_may_be_better) {
  LearnOptions options = quick();
  options.best = "loss";
  Task task = toy(options);
  size_t asked = 0;
  const std::vector<double> scripted{0.5, 0.3, 0.4};
  task.evaluate = [&] { return Evaluation{.figures = {{"accuracy", 1}, {"loss", scripted.at(asked++)}}}; };
  const Folder folder;
  ToyRun run(folder);
  EXPECT_EQ(fit(task, options, run.run).best_epoch, 2);
  options.best = "bleu";
  ToyRun other(folder, "other");
  expect_error<UsageError>([&] { fit(toy(options), options, other.run); },
                           "toy: there is no metric 'bleu' to tell the best epoch by; there are loss, accuracy");
}

TEST(Fit, accumulated_batches_are_one_large_batch) {
  LearnOptions whole = quick();
  whole.optimizer = "sgd";  // adam makes steps of any size from gradients that are all but 0
  LearnOptions parts = whole;
  parts.batch = 5;  // 47 samples: the last step has 5 and 2
  parts.accumulate = 2;
  const Task a = toy(whole), b = toy(parts);
  learned(a, whole);
  learned(b, parts);
  expect_near(weights_of(*a.model), weights_of(*b.model), 1e-5);
}

// Rounded operands of every product, and yet the same way down: each step deviates by some half a percent.
TEST(Fit, bf16_learns_nearly_the_same) {
  LearnOptions options = quick();
  options.optimizer = "sgd";
  const Task exact = toy(options);
  const Left wide = learned(exact, options);
  options.precision = "bf16";
  const Task rounded = toy(options);
  const std::vector<float> start = weights_of(*rounded.model);
  const Left narrow = learned(rounded, options);
  EXPECT_EQ(narrow, learned(toy(options), options));
  EXPECT_NE(narrow.last, wide.last);
  const std::vector<float> a = weights_of(*exact.model), b = weights_of(*rounded.model);
  double moved = 0, apart = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    moved += std::pow(static_cast<double>(a[i]) - static_cast<double>(start[i]), 2);
    apart += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  }
  EXPECT_LT(std::sqrt(apart / moved), 0.05);
  EXPECT_GT(std::sqrt(apart / moved), 1e-5);
}

TEST(Fit, ends_after_so_many_steps) {
  const Folder folder;
  ToyRun run(folder);
  LearnOptions options = quick();
  options.steps = 7;
  const FitResult result = fit(toy(options), options, run.run);
  EXPECT_EQ(result.ending, Ending::complete);
  EXPECT_EQ(result.steps, 7);
  EXPECT_EQ(result.epochs, 2);
  EXPECT_NE(left_in(run.path).csv.find("\n2,7,"), std::string::npos);
}

TEST(Fit, averages_are_what_is_judged_and_kept) {
  const Folder folder;
  ToyRun run(folder);
  LearnOptions options = quick();
  options.average = 0.5f;
  const Task task = toy(options);
  std::vector<float> start = weights_of(*task.model);
  std::vector<double> average(start.begin(), start.end());
  int64_t steps = 0;
  fit(task, options, run.run, {.step = [&](const StepDone&) {
        const double decay = std::min(0.5, (2.0 + static_cast<double>(steps)) / (11.0 + static_cast<double>(steps)));
        ++steps;
        const std::vector<float> now = weights_of(*task.model);
        for (size_t i = 0; i < now.size(); ++i) average[i] = decay * average[i] + (1 - decay) * now[i];
      }});
  expect_near(weights_of(load(run.path / "last")), {average.begin(), average.end()}, 1e-5);
  EXPECT_NE(weights_of(load(run.path / "last")), weights_of(*task.model));
}

TEST(Fit, neither_threads_nor_loaders_change_a_bit) {
  LearnOptions options = quick();
  std::vector<Left> all;
  for (const auto& [threads, loaders] : std::vector<std::pair<int, int64_t>>{{1, 1}, {2, 0}, {7, 3}}) {
    set_thread_count(threads);
    options.loaders = loaders;
    all.push_back(learned(toy(options, 0.1f), options));
  }
  set_thread_count(2);
  EXPECT_TRUE(all[0] == all[1]);
  EXPECT_TRUE(all[0] == all[2]);
}

}  // namespace
}  // namespace heed::test
