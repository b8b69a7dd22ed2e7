// The training loop.
#include <cmath>

#include "heed/core/parallel.h"
#include "tests/train/toy.h"

namespace heed::test {
namespace {

int64_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Trainer, trains_and_writes_its_files) {
  const Folder folder;
  ToyRun run(folder);
  const TrainOptions options = quick();
  const Task task = toy(options);
  std::vector<EpochInfo> epochs;
  int64_t steps = 0;
  const TrainResult result = train_model(task, options, run.run,
                                         {.step =
                                              [&](const StepInfo& step) {
                                                EXPECT_EQ(step.all_step, ++steps);
                                                EXPECT_EQ(step.all_steps, 15);
                                                EXPECT_EQ(step.step, (steps - 1) % 5 + 1);
                                                EXPECT_GT(step.gradient_norm, 0);
                                              },
                                          .epoch = [&](const EpochInfo& epoch) { epochs.push_back(epoch); }});
  EXPECT_EQ(result.ending, StopReason::complete);
  EXPECT_EQ(result.steps, 15);
  ASSERT_EQ(epochs.size(), 3u);
  EXPECT_LT(epochs[2].figures[0].second, epochs[0].figures[0].second);
  EXPECT_GT(result.best, 0.6);
  const RunFiles files = files_of(run.path);
  EXPECT_TRUE(files.csv.starts_with("epoch,step,train_loss,train_accuracy,validation_loss,validation_accuracy,rate\n1,5,")) << files.csv;
  EXPECT_EQ(lines_in(files.csv), 4);
  EXPECT_EQ(lines_in(files.jsonl), 3 + 7);
  EXPECT_EQ(weights_of(load(run.path / "last")), weights_of(*task.model));
}

TEST(Trainer, saves_the_best_epoch_and_stops_by_patience) {
  const Folder folder;
  TrainOptions options = quick();
  options.epochs = 9;
  options.patience = 2;
  Task task = toy(options);
  const std::vector<double> scripted{std::nan(""), 0.5, 0.7, 0.7, 0.6, 0.9};
  size_t calls = 0;
  task.evaluate = [&] { return Evaluation{.figures = {{"accuracy", scripted.at(calls++)}}}; };
  std::vector<std::vector<float>> weights;
  std::vector<bool> best;
  const TrainCallbacks callbacks{.epoch = [&](const EpochInfo& epoch) {
    weights.push_back(weights_of(*task.model));
    best.push_back(epoch.best);
  }};
  const auto train_again = [&](const Task& chosen) {
    ToyRun run(folder);
    return train_model(chosen, options, run.run, callbacks);
  };
  const TrainResult result = train_again(task);
  EXPECT_EQ(result.ending, StopReason::patience);
  EXPECT_EQ(result.epochs, 5);
  EXPECT_EQ(result.best_epoch, 3);
  EXPECT_EQ(result.best, 0.7);
  EXPECT_EQ(best, (std::vector<bool>{true, true, true, false, false}));
  EXPECT_EQ(weights_of(load(folder / "toy/run/best")), weights[2]);
  EXPECT_EQ(weights_of(load(folder / "toy/run/last")), weights[4]);
  // A finished run does not change.
  EXPECT_EQ(train_again(toy(options)).best_epoch, 3);
}

// Ctrl-C during the evaluation: it is aborted, and the resumed run repeats it.
TEST(Trainer, an_interrupted_evaluation_is_repeated) {
  const Folder folder, other_folder;
  TrainOptions options = quick();
  options.average = 0.9f;
  ToyRun whole(other_folder);
  train_model(toy(options), options, whole.run);
  const RunFiles expected = files_of(whole.path);
  {
    ToyRun run(folder);
    Task task = toy(options);
    bool interrupted = false;
    int64_t epochs = 0;
    task.evaluate = [&, evaluate = task.evaluate] {
      if (epochs == 1) interrupted = true;
      const Tensor x = Tensor::zeros({64, 64}, kCpu);
      for (int i = 0; interrupted; ++i) {
        if (i == 100'000) ADD_FAILURE() << "not interrupted";
        if (i == 100'000) break;
        matmul(x, x);
      }
      return evaluate();
    };
    const TrainResult result =
        train_model(task, options, run.run, {.epoch = [&](const EpochInfo&) { ++epochs; }, .stop = [&] { return interrupted; }});
    EXPECT_EQ(result.ending, StopReason::stopped);
    EXPECT_EQ(result.steps, 10);
    EXPECT_EQ(epochs, 1);
  }
  ToyRun run(folder);
  EXPECT_EQ(train_model(toy(options), options, run.run).ending, StopReason::complete);
  const RunFiles files = files_of(run.path);
  EXPECT_EQ(files.csv, expected.csv);
  EXPECT_EQ(files.jsonl, expected.jsonl);
  EXPECT_EQ(weights_of(load(run.path / "best")), weights_of(load(whole.path / "best")));
}

TEST(Trainer, smaller_may_be_better) {
  TrainOptions options = quick();
  options.best = "loss";
  Task task = toy(options);
  size_t calls = 0;
  const std::vector<double> scripted{0.5, 0.3, 0.4};
  task.evaluate = [&] { return Evaluation{.figures = {{"accuracy", 1}, {"loss", scripted.at(calls++)}}}; };
  const Folder folder;
  ToyRun run(folder);
  EXPECT_EQ(train_model(task, options, run.run).best_epoch, 2);
  options.best = "bleu";
  ToyRun other(folder, "other");
  expect_error<UsageError>([&] { train_model(toy(options), options, other.run); },
                           "toy: found the metric 'bleu' to select the best epoch, expected one of loss, accuracy");
}

TEST(Trainer, accumulated_batches_are_one_large_batch) {
  TrainOptions whole = quick();
  whole.optimizer = "sgd";  // adam amplifies gradients that are almost 0
  TrainOptions parts = whole;
  parts.batch = 5;  // 47 samples: the last step has 5 and 2
  parts.accumulate = 2;
  const Task a = toy(whole), b = toy(parts);
  train_toy(a, whole);
  train_toy(b, parts);
  expect_near(weights_of(*a.model), weights_of(*b.model), 1e-5);
}

// bf16 rounds the operands of every product: each step deviates by about half a percent.
TEST(Trainer, bf16_is_close_to_f32) {
  TrainOptions options = quick();
  options.optimizer = "sgd";
  const Task exact = toy(options);
  const RunFiles wide = train_toy(exact, options);
  options.precision = "bf16";
  const Task rounded = toy(options);
  const std::vector<float> start = weights_of(*rounded.model);
  const RunFiles narrow = train_toy(rounded, options);
  EXPECT_EQ(narrow, train_toy(toy(options), options));
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

TEST(Trainer, stops_after_steps) {
  const Folder folder;
  ToyRun run(folder);
  TrainOptions options = quick();
  options.steps = 7;
  const TrainResult result = train_model(toy(options), options, run.run);
  EXPECT_EQ(result.ending, StopReason::complete);
  EXPECT_EQ(result.steps, 7);
  EXPECT_EQ(result.epochs, 2);
  EXPECT_NE(files_of(run.path).csv.find("\n2,7,"), std::string::npos);
}

TEST(Trainer, averages_are_evaluated_and_saved) {
  const Folder folder;
  ToyRun run(folder);
  TrainOptions options = quick();
  options.average = 0.5f;
  const Task task = toy(options);
  std::vector<float> start = weights_of(*task.model);
  std::vector<double> average(start.begin(), start.end());
  int64_t steps = 0;
  train_model(task, options, run.run, {.step = [&](const StepInfo&) {
                const double decay = std::min(0.5, (2.0 + static_cast<double>(steps)) / (11.0 + static_cast<double>(steps)));
                ++steps;
                const std::vector<float> now = weights_of(*task.model);
                for (size_t i = 0; i < now.size(); ++i) average[i] = decay * average[i] + (1 - decay) * now[i];
              }});
  expect_near(weights_of(load(run.path / "last")), {average.begin(), average.end()}, 1e-5);
  EXPECT_NE(weights_of(load(run.path / "last")), weights_of(*task.model));
}

TEST(Trainer, neither_threads_nor_loaders_change_a_bit) {
  TrainOptions options = quick();
  std::vector<RunFiles> all;
  for (const auto& [threads, loaders] : std::vector<std::pair<int, int64_t>>{{1, 1}, {2, 0}, {7, 3}}) {
    set_thread_count(threads);
    options.loaders = loaders;
    all.push_back(train_toy(toy(options, 0.1f), options));
  }
  set_thread_count(2);
  EXPECT_TRUE(all[0] == all[1]);
  EXPECT_TRUE(all[0] == all[2]);
}

}  // namespace
}  // namespace heed::test
