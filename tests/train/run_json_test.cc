// run.json, finding runs, and data fingerprints.
#include "heed/train/run_json.h"

#include "heed/train/data_fingerprint.h"
#include "heed/train/model_folder.h"
#include "heed/train/train_options.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

TEST(RunJson, is_read_as_it_was_written) {
  const Folder run;
  EXPECT_FALSE(read_run_json(run.path()));
  const RunJson about{
      .state = "stopped", .directory = "/a b", .metric = "loss", .settings = {{"rate", 0.1}}, .data = {{"train", {{"items", 3}}}}};
  write_run_json(run.path(), about);
  const std::optional<RunJson> found = read_run_json(run.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state + found->directory + found->metric, "stopped/a bloss");
  EXPECT_EQ(found->settings, about.settings);
  EXPECT_EQ(found->data, about.data);
  EXPECT_FALSE(is_running(run.path()));
  put(run / "run.json", R"({"state": 3})");
  expect_refused([&] { read_run_json(run.path()); }, "run.json: state is \"3\", expected a string");
}

TEST(RunJson, changes_show_both_values) {
  const Json then{{"rate", 0.1}, {"data", ""}, {"gone", 1}, {"same", true}}, now{{"rate", 0.2}, {"data", "x"}, {"new", 1}, {"same", true}};
  const std::vector<Change> settings = settings_changed(then, now);
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0].text(), "data: nothing then, x now");
  EXPECT_EQ(settings[1].text(), "rate: 0.1 then, 0.2 now");
  const std::vector<Change> data =
      data_changed({{"train", {{"items", 3}, {"classes", {"a", "b"}}, {"bytes", 7}}}, {"test", {{"items", 1}}}},
                   {{"train", {{"items", 4}, {"classes", {"a", "c"}}, {"bytes", 7}}}});
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[0].text(), "test items: 1 then, none now");
  EXPECT_EQ(data[1].text(), "train classes: a,b then, a,c now");
  EXPECT_EQ(data[2].text(), "train items: 3 then, 4 now");
}

TEST(DataFingerprint, distinguishes_texts) {
  const std::vector<std::string> a{"ab", "c"}, b{"a", "bc"}, c{"c", "ab"};
  const Json print = fingerprint_of(a);
  EXPECT_EQ(print.at("items"), 2);
  EXPECT_EQ(print.at("bytes"), 3);
  EXPECT_EQ(print, fingerprint_of(a));
  EXPECT_NE(print.at("checksum"), fingerprint_of(b).at("checksum"));
  EXPECT_NE(print.at("checksum"), fingerprint_of(c).at("checksum"));
}

TEST(ModelFolder, runs_are_sorted_by_number) {
  const Folder folder;
  for (const char* name : {"classify/1000", "classify/999", "classify/002", "classify/002/best", "pairs/001", "other", ".hidden/001"}) {
    std::filesystem::create_directories(folder / name);
    if (name != std::string("other")) put(folder / name / "config.toml", "");
  }
  put(folder / "classify/002/best/config.json", "{}");
  const std::vector<Path> expected{folder / "classify/002", folder / "classify/999", folder / "classify/1000", folder / "pairs/001"};
  EXPECT_EQ(runs_below(folder.path()), expected);
  EXPECT_EQ(runs_below(folder / "pairs"), std::vector<Path>{expected[3]});
  EXPECT_EQ(runs_below(expected[0]), std::vector<Path>{expected[0]});
  EXPECT_EQ(model_folder(expected[0]), expected[0] / "best");
  EXPECT_EQ(model_folder(expected[0] / "best"), expected[0] / "best");
  EXPECT_EQ(run_of_model(expected[0] / "best"), expected[0]);
  EXPECT_EQ(run_of_model(expected[0].string() + "/"), expected[0]);
  EXPECT_EQ(run_of_model(folder / "other"), Path());
  std::filesystem::rename(expected[0] / "best", expected[0] / "last");
  EXPECT_EQ(model_folder(expected[0]), expected[0] / "last");
}

TEST(Schedule, a_longer_run_reports_its_rates) {
  TrainOptions options{.rate = 1, .schedule = "linear", .warmup = 0};
  EXPECT_EQ(schedule_change(options, 10, 10, 10), "");
  EXPECT_EQ(schedule_change(options, 0, 10, 20), "");
  EXPECT_EQ(schedule_change(options, 10, 10, 20),
            "the run now has 20 steps instead of 10: schedule=linear now covers all of them. The last step had a rate of 0.1, "
            "the next "
            "one has 0.5");
  EXPECT_EQ(schedule_change(options, 5, 10, 5),
            "the run now has 5 steps instead of 10: schedule=linear now covers all of them. The last step had a rate of 0.6");
}

}  // namespace
}  // namespace heed::test
