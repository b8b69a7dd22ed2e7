// Training runs of the lab are reproducible and leave no files.
#include "heed/lab/training.h"

#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

lab::TrainingRun tiny_run() {
  lab::ImageTrainingRuns runs{.images = 120, .epochs = 3, .width = 16, .layers = 1, .heads = 2};
  lab::TrainingRun run = runs.for_seed(7);
  run.add(runs.transformer());
  return run;
}
const lab::ProgressCallback no_progress = [](const std::string&) {};

TEST(LabTraining, runs_are_reproducible_and_leave_no_files) {
  std::vector<double> first, second;
  Path path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    const lab::TrainedModel one = run_training(tiny_run(), folder, "one", no_progress),
                            two = run_training(tiny_run(), folder, "two", no_progress);
    EXPECT_EQ(one.steps, 6);
    ASSERT_EQ(one.losses.size(), 3u);
    EXPECT_LT(one.losses.back(), one.losses.front());
    EXPECT_EQ(one.losses, two.losses);
    EXPECT_EQ(one.metric("accuracy"), two.metric("accuracy"));
    EXPECT_TRUE(std::filesystem::exists(one.folder / "model.safetensors"));
    expect_error([&] { (void)one.metric("beauty"); }, "beauty");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(LabTraining, tasks_can_be_modified_and_settings_added) {
  const TemporaryFolder folder;
  lab::TrainingRun run = tiny_run();
  run.add({"epochs=1"});
  run.modify_task = [](Task& task) { task.batches = [](int64_t) { return std::vector<std::vector<int64_t>>(5, {0, 1, 2}); }; };
  EXPECT_EQ(run_training(run, folder, "changed", no_progress).steps, 5);
}

TEST(LabTraining, differences_are_per_seed) {
  const lab::Trials a{{0.5, 0.7, 0.6}}, b{{0.4, 0.6, 0.5}};
  const lab::Interval by = difference(a, b);
  EXPECT_NEAR(by.mean, 0.1, 1e-12);
  EXPECT_NEAR(by.high - by.low, 0, 1e-12);  // the difference is the same in every run
  EXPECT_EQ(lab::interval_text({0.5, 0.45, 0.553}), "50.0 % (45.0 to 55.3)");
}

}  // namespace
}  // namespace heed::test
