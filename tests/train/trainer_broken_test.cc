// Runs that are stopped, diverge or lose their checkpoints, and are resumed.
#include <cmath>
#include <limits>

#include "tests/train/toy.h"

namespace heed::test {
namespace {

TEST(Trainer, resumes_with_the_same_numbers_wherever_it_stopped) {
  for (const char* optimizer : {"adamw", "sgd"}) {
    TrainOptions options = quick();
    options.optimizer = optimizer;
    options.average = 0.9f;
    options.accumulate = 2;  // 3 steps per epoch
    const RunFiles expected = train_toy(toy(options, 0.1f), options);
    const Folder folder;
    int stops = 0;
    while (true) {
      ToyRun run(folder);
      int64_t steps = 0;
      const TrainCallbacks callbacks{.step = [&](const StepInfo&) { ++steps; },
                                     .stop = [&] { return steps == 2; }};  // also polled during evaluations
      const TrainResult result = train_model(toy(options, 0.1f), options, run.run, callbacks);
      if (result.ending != StopReason::stopped) break;
      ++stops;
    }
    EXPECT_GE(stops, 4);
    EXPECT_TRUE(files_of(folder / "toy/run") == expected);
  }
}

TEST(Trainer, a_nan_loss_ends_the_run_with_the_previous_state) {
  TrainOptions options = quick();
  const RunFiles expected = train_toy(toy(options, 0.1f), options);
  const std::vector<std::pair<float, std::string>> cases{{std::nanf(""), "the input pixel_values holds nan (check the data)"},
                                                         {std::numeric_limits<float>::max(), "hidden_states.0 holds "}};
  for (const auto& [value, culprit] : cases) {
    const Folder folder;
    int64_t steps = 0;
    {
      ToyRun run(folder);
      const Task task = toy(options, 0.1f, spoiled_with(value));
      try {
        train_model(task, options, run.run, {.step = [&](const StepInfo&) { ++steps; }});
        ADD_FAILURE() << "no error";
      } catch (const DivergedError& error) {
        const std::string text = error.what();
        EXPECT_TRUE(text.starts_with("toy: the loss is ")) << text;
        EXPECT_NE(text.find("in epoch 2, step " + std::to_string(steps + 1) + ": " + culprit), std::string::npos) << text;
        EXPECT_NE(text.find("The state before this step is saved in"), std::string::npos) << text;
        EXPECT_NE(get(run.path / "log.txt").find(culprit), std::string::npos);
      }
    }
    ToyRun run(folder);
    std::string messages;
    train_model(toy(options, 0.1f), options, run.run, {.say = [&](const std::string& text) { messages += text; }});
    EXPECT_EQ(messages, "resumes from step " + std::to_string(steps) + " of 15");
    EXPECT_TRUE(files_of(run.path) == expected);
  }
}

TEST(Trainer, nan_steps_may_be_skipped) {
  TrainOptions options = quick();
  options.on_nan = "skip";
  options.log_every = 1;
  for (const int64_t accumulate : {1, 2}) {
    options.accumulate = accumulate;
    const Folder folder;
    ToyRun run(folder);
    const Task task = toy(options, 0, spoiled_with(std::nanf("")));
    std::string messages;
    const TrainResult result = train_model(task, options, run.run, {.say = [&](const std::string& text) { messages += text; }});
    EXPECT_EQ(result.ending, StopReason::complete);
    EXPECT_EQ(result.skipped, 1);
    EXPECT_NE(messages.find("The step is skipped"), std::string::npos) << messages;
    for (const float weight : weights_of(*task.model)) ASSERT_TRUE(std::isfinite(weight));
    const RunFiles left = files_of(run.path);
    EXPECT_NE(left.jsonl.find("\"gradient_norm\":null"), std::string::npos);
    EXPECT_EQ(left.csv.find("nan"), std::string::npos) << left.csv;
    // The same if the run is stopped after every step.
    const Folder other;
    while (true) {
      ToyRun part(other);
      bool stepped = false;
      const TrainCallbacks callbacks{.step = [&](const StepInfo&) { stepped = true; }, .stop = [&] { return stepped; }};
      if (train_model(toy(options, 0, spoiled_with(std::nanf(""))), options, part.run, callbacks).ending != StopReason::stopped) break;
    }
    EXPECT_TRUE(files_of(other / "toy/run") == left);
  }
}

TEST(Trainer, starts_from_scratch_without_a_usable_checkpoint) {
  const TrainOptions options = quick();
  const RunFiles expected = train_toy(toy(options), options);
  const Folder folder;
  {
    ToyRun run(folder);
    train_model(toy(options), options, run.run);
  }
  for (const auto& file : std::filesystem::directory_iterator(folder / "toy/run/checkpoints")) put(file.path(), "damaged");
  ToyRun run(folder);
  std::string messages;
  train_model(toy(options), options, run.run, {.say = [&](const std::string& text) { messages += text + "\n"; }});
  EXPECT_NE(messages.find("using the previous checkpoint instead"), std::string::npos) << messages;
  EXPECT_NE(messages.find("found no usable checkpoint: training starts from scratch"), std::string::npos) << messages;
  EXPECT_TRUE(files_of(run.path) == expected);
}

}  // namespace
}  // namespace heed::test
