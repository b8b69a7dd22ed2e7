// Runs that are stopped, diverge or lose their checkpoints, and go on.
#include <cmath>
#include <limits>

#include "tests/train/toy.h"

namespace heed::test {
namespace {

TEST(Fit, stopped_anywhere_it_goes_on_with_the_same_numbers) {
  for (const char* optimizer : {"adamw", "sgd"}) {
    LearnOptions options = quick();
    options.optimizer = optimizer;
    options.average = 0.9f;
    options.accumulate = 2;  // 3 steps an epoch
    const Left expected = learned(toy(options, 0.1f), options);
    const Folder folder;
    int stops = 0;
    while (true) {
      ToyRun run(folder);
      int64_t steps = 0;
      const Watch watch{.step = [&](const StepDone&) { ++steps; }, .stop = [&] { return steps == 2; }};  // asked during evaluations too
      const FitResult result = fit(toy(options, 0.1f), options, run.run, watch);
      if (result.ending != Ending::stopped) break;
      ++stops;
    }
    EXPECT_GE(stops, 4);
    EXPECT_TRUE(left_in(folder / "toy/run") == expected);
  }
}

TEST(Fit, a_loss_that_is_no_number_ends_the_run_with_the_state_before_it) {
  LearnOptions options = quick();
  const Left expected = learned(toy(options, 0.1f), options);
  const std::vector<std::pair<float, std::string>> cases{{std::nanf(""), "the input pixel_values holds nan (look at the data)"},
                                                         {std::numeric_limits<float>::max(), "hidden_states.0 holds "}};
  for (const auto& [value, culprit] : cases) {
    const Folder folder;
    int64_t steps = 0;
    {
      ToyRun run(folder);
      const Task task = toy(options, 0.1f, spoiled_with(value));
      try {
        fit(task, options, run.run, {.step = [&](const StepDone&) { ++steps; }});
        ADD_FAILURE() << "no error";
      } catch (const DivergedError& error) {
        const std::string text = error.what();
        EXPECT_TRUE(text.starts_with("toy: the loss is ")) << text;
        EXPECT_NE(text.find("in epoch 2, step " + std::to_string(steps + 1) + ": " + culprit), std::string::npos) << text;
        EXPECT_NE(text.find("The state before this step is kept in"), std::string::npos) << text;
        EXPECT_NE(get(run.path / "log.txt").find(culprit), std::string::npos);
      }
    }
    ToyRun run(folder);
    std::string said;
    fit(toy(options, 0.1f), options, run.run, {.say = [&](const std::string& text) { said += text; }});
    EXPECT_EQ(said, "goes on from step " + std::to_string(steps) + " of 15");
    EXPECT_TRUE(left_in(run.path) == expected);
  }
}

TEST(Fit, such_steps_may_be_skipped) {
  LearnOptions options = quick();
  options.on_nan = "skip";
  options.log_every = 1;
  for (const int64_t accumulate : {1, 2}) {
    options.accumulate = accumulate;
    const Folder folder;
    ToyRun run(folder);
    const Task task = toy(options, 0, spoiled_with(std::nanf("")));
    std::string said;
    const FitResult result = fit(task, options, run.run, {.say = [&](const std::string& text) { said += text; }});
    EXPECT_EQ(result.ending, Ending::complete);
    EXPECT_EQ(result.skipped, 1);
    EXPECT_NE(said.find("The step is skipped"), std::string::npos) << said;
    for (const float weight : weights_of(*task.model)) ASSERT_TRUE(std::isfinite(weight));
    const Left left = left_in(run.path);
    EXPECT_NE(left.jsonl.find("\"gradient_norm\":null"), std::string::npos);
    EXPECT_EQ(left.csv.find("nan"), std::string::npos) << left.csv;
    // The same when the run is stopped after every step.
    const Folder other;
    while (true) {
      ToyRun part(other);
      bool stepped = false;
      const Watch watch{.step = [&](const StepDone&) { stepped = true; }, .stop = [&] { return stepped; }};
      if (fit(toy(options, 0, spoiled_with(std::nanf(""))), options, part.run, watch).ending != Ending::stopped) break;
    }
    EXPECT_TRUE(left_in(other / "toy/run") == left);
  }
}

TEST(Fit, without_a_good_checkpoint_it_begins_anew) {
  const LearnOptions options = quick();
  const Left expected = learned(toy(options), options);
  const Folder folder;
  {
    ToyRun run(folder);
    fit(toy(options), options, run.run);
  }
  for (const auto& file : std::filesystem::directory_iterator(folder / "toy/run/checkpoints")) put(file.path(), "damaged");
  ToyRun run(folder);
  std::string said;
  fit(toy(options), options, run.run, {.say = [&](const std::string& text) { said += text + "\n"; }});
  EXPECT_NE(said.find("this checkpoint is passed over"), std::string::npos) << said;
  EXPECT_NE(said.find("no checkpoint can be used: learning begins anew"), std::string::npos) << said;
  EXPECT_TRUE(left_in(run.path) == expected);
}

}  // namespace
}  // namespace heed::test
