// Cached reports: every part survives, other settings and damaged files are not found.
#include "heed/lab/cache.h"

#include <limits>

#include "tests/io/files.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

lab::Report report_with_everything() {
  lab::Report out{.statement = "β → ∞", .agrees = "a", .undecided = ""};
  out.measured = {lab::by_clock(lab::at_most("time", 1, 0.1 + 0.2)), lab::contradicts("value", 1, std::nan(""))};
  out.tables = {{.title = "t", .columns = {"a", "b"}, .rows = {{"text", 1.5}, {std::numeric_limits<double>::infinity(), ""}}}};
  lab::HeatMap map{.rows = 1, .columns = 2, .values = {-0.0, 3}, .down = "d", .least = 0, .diverging = true};
  map.under = {.width = 1, .height = 1, .pixels = {0, 255, 7}};
  out.figures = {
      lab::figure("f", "c",
                  {lab::Plot{"lines", lab::Lines{.across = {"x", true, 1.0}, .series = {{"s", {1}, {2}, lab::Mark::both, {1}, {3}}}}},
                   lab::Plot{"map", map}, lab::Plot{"bars", lab::Bars{.groups = {"g"}, .sets = {{"n", {1}, {0}, {2}}}}},
                   lab::Plot{"image", Image{.width = 1, .height = 1, .pixels = {1, 2, 3}}}})};
  return out;
}

TEST(LabCache, keeps_every_part) {
  const lab::Report before = report_with_everything();
  const Json json = lab::archived(before);
  const lab::Report after = lab::read_report(Json::from_cbor(Json::to_cbor(json)));
  EXPECT_EQ(lab::archived(after), json);
  EXPECT_EQ(after.statement, before.statement);
  EXPECT_TRUE(std::isnan(after.measured[1].measured));
  EXPECT_TRUE(after.measured[0].by_clock);
  EXPECT_EQ(after.measured[0].measured, 0.1 + 0.2);
  EXPECT_EQ(std::get<double>(after.tables[0].rows[1][0]), std::numeric_limits<double>::infinity());
  const auto& map = std::get<lab::HeatMap>(after.figures[0].frames[0].plots[1].body);
  EXPECT_TRUE(std::signbit(map.values[0]));
  EXPECT_EQ(map.under.pixels, (std::vector<uint8_t>{0, 255, 7}));
  EXPECT_EQ(std::get<lab::Lines>(after.figures[0].frames[0].plots[0].body).series[0].high, std::vector<double>{3});
  Json shorter = json;
  shorter.erase(shorter.size() - 1);
  EXPECT_THROW(lab::read_report(shorter), Error);
}

TEST(LabCache, finds_reports_by_settings_until_they_are_forgotten) {
  const Folder folder;
  const lab::ReportCache cache(folder / "cache"), none{Path()};
  const lab::CachedReport kept{report_with_everything(), 12.5};
  EXPECT_FALSE(none.can_keep());
  put(folder / "file", "");
  EXPECT_FALSE(lab::ReportCache(folder / "file").can_keep());
  none.keep("L28", {{"epochs", 3}}, kept);
  EXPECT_FALSE(std::filesystem::exists(folder / "cache"));
  EXPECT_FALSE(cache.find("L28", {{"epochs", 3}}));
  EXPECT_TRUE(cache.can_keep());
  cache.keep("L28", {{"epochs", 3}}, kept);
  ASSERT_TRUE(cache.find("L28", {{"epochs", 3}}));
  EXPECT_EQ(cache.find("L28", {{"epochs", 3}})->seconds, 12.5);
  EXPECT_FALSE(cache.find("L28", {{"epochs", 4}}));
  EXPECT_FALSE(cache.find("L29", {{"epochs", 3}}));
  EXPECT_FALSE(none.find("L28", {{"epochs", 3}}));
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) put(entry.path(), "damaged");
  EXPECT_FALSE(cache.find("L28", {{"epochs", 3}}));
  cache.keep("L28", {{"epochs", 3}}, kept);
  cache.forget("L28", {{"epochs", 4}});
  EXPECT_TRUE(cache.find("L28", {{"epochs", 3}}));
  cache.forget("L28", {{"epochs", 3}});
  EXPECT_FALSE(cache.find("L28", {{"epochs", 3}}));
}

TEST(LabCache, training_experiments_run_once) {
  const Folder folder;
  const lab::ReportCache cache(folder / "cache");
  int64_t messages = 0;
  const auto run = [&] {
    return lab::run_or_find(
        lab::find_experiment("L46"), {"images=40", "epochs=2", "seeds=2", "width=16", "layers=1", "heads=2"},
        [&](const std::string&) { ++messages; }, cache);
  };
  const lab::Result first = run();
  EXPECT_EQ(first.error, "");
  const int64_t once = messages;
  EXPECT_GT(once, 0);
  const lab::Result second = run();
  EXPECT_EQ(messages, once);
  EXPECT_EQ(lab::result_json(second), lab::result_json(first));
}

// budget=2 doubles the default epochs of an experiment, but not epochs that are given.
TEST(LabBudget, multiplies_epochs) {
  const auto settings_with = [](std::vector<std::string> settings) {
    for (const char* each : {"images=40", "seeds=2", "width=16", "layers=1", "heads=2"}) settings.emplace_back(each);
    return lab::run_one(lab::find_experiment("L38"), settings, [](const std::string&) {}).settings;
  };
  EXPECT_EQ(settings_with({"budget=2"})["epochs"], 24);
  EXPECT_EQ(settings_with({"budget=2", "epochs=1"})["epochs"], 1);
  for (const lab::Experiment& experiment : lab::all_experiments())
    if (lab::trains_models(experiment)) lab::check_plan({.experiments = {&experiment}, .settings = {"budget=2"}});
  for (const SettingInfo& each : lab::settings_of(lab::find_experiment("L1"))) EXPECT_NE(each.key, "budget");
}

}  // namespace
}  // namespace heed::test
