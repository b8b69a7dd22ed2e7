// Learning in the lab: runs are whole, repeat themselves, and leave nothing behind.
#include "heed/lab/learn.h"

#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

lab::Lesson tiny_lesson() {
  lab::PictureLessons lessons{.pictures = 120, .epochs = 3, .width = 16, .layers = 1, .heads = 2};
  lab::Lesson lesson = lessons.lesson(7);
  lesson.add(lessons.transformer());
  return lesson;
}
const lab::Say quiet = [](const std::string&) {};

TEST(LabLearning, learns_the_same_twice_and_leaves_nothing) {
  std::vector<double> first, second;
  Path path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    const lab::Learned one = learn(tiny_lesson(), folder, "one", quiet), two = learn(tiny_lesson(), folder, "two", quiet);
    EXPECT_EQ(one.steps, 6);
    ASSERT_EQ(one.losses.size(), 3u);
    EXPECT_LT(one.losses.back(), one.losses.front());
    EXPECT_EQ(one.losses, two.losses);
    EXPECT_EQ(one.figure("accuracy"), two.figure("accuracy"));
    EXPECT_TRUE(std::filesystem::exists(one.folder / "model.safetensors"));
    expect_error([&] { (void)one.figure("beauty"); }, "beauty");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(LabLearning, tasks_may_be_changed_and_words_added) {
  const TemporaryFolder folder;
  lab::Lesson lesson = tiny_lesson();
  lesson.add({"epochs=1"});
  lesson.set = [](Task& task) { task.batches = [](int64_t) { return std::vector<std::vector<int64_t>>(5, {0, 1, 2}); }; };
  EXPECT_EQ(learn(lesson, folder, "changed", quiet).steps, 5);
}

TEST(LabLearning, differences_go_by_seeds) {
  const lab::Trials a{{0.5, 0.7, 0.6}}, b{{0.4, 0.6, 0.5}};
  const lab::Interval apart = differences(a, b).interval();
  EXPECT_NEAR(apart.mean, 0.1, 1e-12);
  EXPECT_NEAR(apart.high - apart.low, 0, 1e-12);  // they differ by the same in every run
  EXPECT_EQ(lab::interval_text({0.5, 0.45, 0.553}), "50.0 % (45.0 to 55.3)");
}

}  // namespace
}  // namespace heed::test
