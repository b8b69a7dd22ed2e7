// The lab: the list of experiments, verdicts, measurements, and output.
#include <set>

#include "heed/lab/formula.h"
#include "heed/lab/measure.h"
#include "heed/lab/sources.h"
#include "heed/lab/terminal.h"
#include "heed/lab/training.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

using namespace lab;

Result example_result() {
  static const Experiment experiment{.number = "L99",
                                     .name = "made-up",
                                     .topic = Topic::cost,
                                     .title = "A <title> & more",
                                     .claim = "It is so: $a < b$.",
                                     .formula = R"(\frac{a}{b} \le 1)",
                                     .setup = "Two numbers $a$ and $b$.",
                                     .prepare = {}};
  Result result{.experiment = &experiment, .settings = {{"seed", 1}}, .seconds = 0.5};
  result.report.statement = "It is so.";
  result.report.measured = {close_to("a", 100, 101, 0.02)};
  result.report.tables = {{"T", {"name", "value"}, {{"x", 1.5}, {"y", std::nan("")}}}};
  const Lines lines{.across = {"x", true}, .up = {"y", true}, .series = {{"s", {1, 10, 100}, {0, 2, 3}, Mark::both, {0, 1, 2}, {1, 3, 4}}}};
  Figure film{.title = "Film", .frames = {}, .parameter = "β"};
  for (const double value : {0.0, 1.0})
    film.frames.push_back({setting_text(value), {Plot{"one", HeatMap{2, 2, {value, 0, 0.5, 1}}}, Plot{"two", lines}}});
  result.report.figures = {figure("Lines", "c", Plot{"", lines}), film,
                           figure("Bars", "", Plot{"", Bars{{"s"}, {"a", "b"}, {{"m", {1, 2}, {0.5, 1}, {1.5, 3}}}}}),
                           figure("Image", "", Plot{"", Image{1, 1, {1, 2, 3}}})};
  result.verdict = verdict_of(result.report);
  return result;
}

TEST(Lab, experiments_are_sorted_unique_and_well_formed) {
  std::set<std::string> names, numbers;
  int last = 0;
  for (const Experiment& experiment : all_experiments()) {
    SCOPED_TRACE(experiment.number + " " + experiment.name);
    EXPECT_TRUE(names.insert(experiment.name).second);
    EXPECT_TRUE(numbers.insert(experiment.number).second);
    ASSERT_EQ(experiment.number[0], 'L');
    EXPECT_GT(std::stoi(experiment.number.substr(1)), last);
    last = std::stoi(experiment.number.substr(1));
    EXPECT_TRUE(experiment.claim.ends_with('.')) << experiment.claim;
    EXPECT_TRUE(experiment.setup.ends_with('.')) << experiment.setup;
    EXPECT_EQ(experiment.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
    EXPECT_EQ(experiment.published.empty(), experiment.expected != Verdict::corrected);
    const Source* source = find_source(experiment);  // a reader must be able to look it up
    ASSERT_NE(source, nullptr);
    EXPECT_GT(source->question.size(), 10u);
    for (const std::string& sentence : {experiment.claim, experiment.title, experiment.published, experiment.setup})
      EXPECT_NE(sentence_markup(sentence), sentence.empty() ? "?" : "");
    if (!experiment.formula.empty()) {
      EXPECT_NE(formula_markup(experiment.formula), "");
      EXPECT_EQ(formula_text(experiment.formula).find('\\'), std::string::npos);
    }
    EXPECT_NE(settings_help(experiment).find("full=false"), std::string::npos);
  }
}

TEST(Lab, unknown_names_and_keys_are_refused_with_a_suggestion) {
  expect_error<UsageError>([] { find_experiment("sofmax-temperature"); }, "did you mean 'softmax-temperature'?");
  expect_error<UsageError>([] { find_experiment("L77"); }, "there is no experiment 'L77'");
  EXPECT_EQ(&find_experiment("l1"), &find_experiment("softmax-temperature"));
  const Experiment &first = find_experiment("L1"), &other = find_experiment("L7");
  expect_error<UsageError>(
      [&] {
        check_plan({{&first}, {"tokns=3"}});
      },
      "softmax-temperature has no setting 'tokns'; did you mean 'tokens'?");
  expect_error<UsageError>([&] { check_plan({{&first}, {"tokens=x"}}); }, "tokens='x', expected a whole number");
  expect_error<UsageError>([&] { check_plan({{&first, &other}, {"height=3"}}); }, "none of the experiments has a setting 'height'");
  expect_error<UsageError>([&] { check_plan({{&first}, {"full=perhaps"}}); }, "full='perhaps', expected true or false");
  check_plan({{&first, &other}, {"tokens=8", "samples=2000", "seed=3", "full=true"}});  // each is a setting of at least one
}

TEST(Lab, the_verdict_follows_from_the_numbers) {
  Report report;
  EXPECT_EQ(verdict_of(report), Verdict::fails);
  report.measured = {close_to("", 100, 102, 0.02), equal_to("", 1, 1), at_most("", 3, 3), at_least("", 3, 3)};
  EXPECT_EQ(verdict_of(report), Verdict::holds);
  report.measured.push_back(contradicts("", 5, 10, 0.4));
  EXPECT_EQ(verdict_of(report), Verdict::corrected);
  for (const Measured& bad : {close_to("", 100, 103, 0.02), equal_to("", 1, 1.1, 0.05), at_most("", 3, 3.1), at_least("", 3, 2.9),
                              contradicts("", 9, 10, 0.4), at_most("", 3, std::nan("")), contradicts("", 5, std::nan(""))}) {
    report.measured.push_back(bad);
    EXPECT_EQ(verdict_of(report), Verdict::fails);
    report.measured.pop_back();
  }
}

TEST(Lab, the_text_follows_from_the_numbers) {
  Report report{.statement = "All is well.", .measured = {equal_to("a", 1, 1)}};
  EXPECT_EQ(finding_of(report), "All is well.");
  report.agrees = "So does the book.";
  EXPECT_EQ(finding_of(report), "All is well. So does the book.");
  report.measured.push_back(at_most("b", 3, 4.5));
  EXPECT_EQ(finding_of(report), "Not as predicted at these settings: b is 4.500, predicted was ≤ 3.");
  for (int i = 0; i < 4; ++i) report.measured.push_back(contradicts("c", 5, 5));
  EXPECT_EQ(finding_of(report),
            "Not as predicted at these settings: b is 4.500, predicted was ≤ 3; c is 5, as published; c is 5, as published; and 2 more.");
  report.undecided = "Too few steps.";
  EXPECT_EQ(verdict_of(report), Verdict::fails);  // a failed measurement outweighs undecided ones
  report.measured.resize(1);
  EXPECT_EQ(verdict_of(report), Verdict::undecided);
  EXPECT_EQ(finding_of(report), "Too few steps.");
  EXPECT_EQ(verdict_text(Verdict::undecided), "not decided");
}

// Wilson's interval, solved from its definition: the shares p at which the measured one is z standard errors away.
TEST(Lab, intervals_of_shares_stay_between_0_and_1) {
  const std::vector<double> near_one{0.99, 1, 0.98, 1};
  const Interval plain = confidence(near_one), share = share_confidence(near_one);
  EXPECT_GT(plain.high, 1);
  EXPECT_LE(share.high, 1);
  EXPECT_LT(share.low, share.mean);
  const double z = 3.182, error = (plain.high - plain.mean) / z, n = plain.mean * (1 - plain.mean) / (error * error);
  for (const double p : {share.low, share.high}) EXPECT_NEAR(std::abs(share.mean - p), z * std::sqrt(p * (1 - p) / n), 1e-9);
  const Interval all = share_confidence(std::vector<double>{1, 1, 1}, 100);  // 300 of 300 right
  EXPECT_EQ(all.high, 1);
  EXPECT_NEAR(all.low, 300 / (300 + 4.303 * 4.303), 1e-9);
  const Interval same = difference_confidence(std::vector<double>{0.1, 0.1, 0.1}, 100);  // at least 10 of 100 differ in every run
  EXPECT_NEAR(same.high - same.mean, 4.303 * std::sqrt(0.1 * 0.9 / 300), 1e-9);
  EXPECT_NEAR(difference_confidence(std::vector<double>{0.1, 0.1, 0.1}).high, 0.1, 1e-12);  // unknown samples
  const Interval none = share_confidence(std::vector<double>{0, 0, 0}, 100);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 1 - all.low, 1e-9);
}

// Weights of 1e-12 are far below an axis that begins at 1e-6, and 0 has no logarithm: both are at the bottom.
TEST(Lab, sparklines_stay_within_their_axes) {
  const Lines lines{
      .across = {"s"}, .up = {"weight", true, 1e-6, 1.0}, .series = {{"up", {1, 2, 3}, {0.1, 1, 1}}, {"down", {1, 2, 3}, {0.1, 1e-12, 0}}}};
  const std::vector<std::string> rows = figure_lines(figure("", "", Plot{"", lines}), {});
  EXPECT_NE(rows.at(0).find("█  0.1000 → 1"), std::string::npos) << rows[0];
  EXPECT_NE(rows.at(1).find("▁  0.1000 → 0"), std::string::npos) << rows[1];
  EXPECT_EQ(rows.at(1).find("█"), std::string::npos) << rows[1];
}

TEST(Lab, a_failing_experiment_reports_its_error) {
  const Experiment broken{
      .number = "L98", .name = "broken", .topic = Topic::cost, .title = "", .claim = "", .prepare = [](Settings&, Size) {
        return [](const ProgressCallback&) -> Report { fail("op: found 1, expected 2"); };
      }};
  const Result result = run_one(broken, {}, [](const std::string&) {});
  EXPECT_EQ(result.error, "op: found 1, expected 2");
  EXPECT_FALSE(result.as_documented());
  EXPECT_NE(results_page(std::vector{result}).find("found 1, expected 2"), std::string::npos);
}

TEST(Lab, fitted_powers_and_statistics_are_correct) {
  const std::vector<double> x{1, 2, 4, 8}, y{3, 12, 48, 192};
  const Power power = fitted_power(x, y);
  EXPECT_NEAR(power.exponent, 2, 1e-12);
  EXPECT_NEAR(power.factor, 3, 1e-12);
  EXPECT_NEAR(power.error, 0, 1e-7);
  EXPECT_NEAR(power.at(3), 27, 1e-9);
  EXPECT_NEAR(*crossover(x, std::vector<double>{4, 4, 4, 4}, std::vector<double>{1, 2, 8, 16}), std::pow(2, 1.5), 1e-12);
  EXPECT_FALSE(crossover(x, y, y).has_value());
  const Interval interval = confidence(std::vector<double>{1, 2, 3, 4});
  EXPECT_NEAR(interval.mean, 2.5, 1e-12);
  EXPECT_NEAR(interval.high - interval.mean, 3.182 * std::sqrt(5.0 / 3 / 4), 1e-9);
  EXPECT_EQ(median_of({3, 1, 2, 10}), 2.5);
  EXPECT_NEAR(entropy_of(std::vector<float>{0.5f, 0.5f, 0}), std::log(2), 1e-9);
  EXPECT_TRUE(std::isnan(largest_difference(Tensor::full({2}, std::nan(""), kCpu), Tensor::zeros({2}, kCpu))));
  EXPECT_EQ(powers(1, 100, 3).back(), 100);
  int first = 0, second = 0;
  EXPECT_EQ(median_seconds({[&] { ++first; }, [&] { ++second; }}, 3).size(), 2u);
  EXPECT_GT(first, 100);
  EXPECT_GT(second, 100);
}

TEST(Lab, numbers_are_formatted) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(-3), "-3");
  EXPECT_EQ(number_text(12.3456), "12.35");
  EXPECT_EQ(number_text(0.00123456), "0.001235");
  EXPECT_EQ(number_text(123456.7), "123\u202f457");
  EXPECT_EQ(number_text(-9999.6), "-10\u202f000");
  EXPECT_EQ(number_text(0.99999), "1.000");
  EXPECT_EQ(number_text(9999), "9999");
  EXPECT_EQ(number_text(-67108864), "-67\u202f108\u202f864");
  EXPECT_EQ(number_text(1.23456e-7), "1.23e-7");
  EXPECT_EQ(number_text(0.001), "0.001000");
  EXPECT_EQ(number_text(3.9999), "4.000");
  EXPECT_EQ(number_text(1e12), "1.00e12");
  EXPECT_EQ(number_text(std::nan("")), "no number");
  EXPECT_EQ(setting_text(0.05f), "0.05");
  EXPECT_EQ(about_text(0.2386), "0.24");
  EXPECT_EQ(about_text(1.688), "1.7");
  EXPECT_EQ(about_text(123.4), "120");
  EXPECT_EQ(percent_text(0.52083), "52.1 %");
  EXPECT_EQ(close_to("", 0.125, 0, 0.0453061).prediction(), "0.125 ± 4.531 %");
  EXPECT_EQ(close_to("", 3, 0, 0.001).prediction(), "3 ± 0.1 %");
  EXPECT_EQ(interval_text({-0.0001, -0.02, 0.0003}), "0.0 % (-2.0 to 0.0)");
  EXPECT_EQ(points_text({0.024, -0.02, 0.069}), "2.4 points (-2.0 to 6.9)");
}

TEST(Lab, predictions_show_their_tolerance) {
  EXPECT_EQ(close_to("", 1.5, 0, 0.02).prediction(), "1.5 ± 2 %");
  EXPECT_EQ(equal_to("", 0, 0, 1e-5).prediction(), "0 ± 1e-5");
  EXPECT_EQ(equal_to("", 120, 0).prediction(), "120");
  EXPECT_EQ(equal_to("", 1942400, 0).prediction(), lab::number_text(1942400));  // formatted like the measured value
  EXPECT_EQ(at_most("", 1e-5, 0).prediction(), "≤ 1e-5");
  EXPECT_EQ(at_least("", std::log(16), 0).prediction(), "≥ 2.773");
}

TEST(Lab, json_is_complete_and_parses) {
  const Json json = parse_json("report", results_json(std::vector{example_result()}).dump());
  const Json& one = json["experiments"][0];
  EXPECT_EQ(one["verdict"], "holds");
  EXPECT_EQ(one["claim"], "It is so: a < b.");
  EXPECT_EQ(one["setup"], "Two numbers a and b.");
  EXPECT_EQ(one["measured"][0]["measured"], 101);
  EXPECT_TRUE(one["tables"][0]["rows"][1][1].is_null());
  EXPECT_EQ(one["figures"][1]["frames"].size(), 2u);
  EXPECT_EQ(json["as_documented"], true);
}

TEST(Lab, the_page_is_self_contained) {
  const std::string page = results_page(std::vector{example_result()});
  for (const char* word : {"src=", "url(", "@import", "<link", "fetch(", "XMLHttp"}) EXPECT_EQ(page.find(word), std::string::npos) << word;
  for (size_t at = page.find("http"); at != std::string::npos; at = page.find("http", at + 1))
    EXPECT_TRUE(page.substr(at).starts_with("http://www.w3.org/2000/svg")) << page.substr(at, 60);
  for (size_t at = page.find("href=\""); at != std::string::npos; at = page.find("href=\"", at + 1))
    EXPECT_TRUE(page[at + 6] == '#' || page.substr(at + 6).starts_with("data:image/png;base64,")) << page.substr(at, 60);
  EXPECT_NE(page.find("A &lt;title&gt; &amp; more"), std::string::npos);
  EXPECT_NE(page.find("<math"), std::string::npos);
  EXPECT_NE(page.find("data-values=\"0|1\""), std::string::npos);
}

TEST(Lab, the_folder_is_complete_and_other_folders_are_not_replaced) {
  const Folder folder;
  const std::vector results{example_result()};
  ReportFolder(folder / "report").write(results);
  put(folder / "report/figures/old.svg", "");
  ReportFolder(folder / "report").write(results);  // replaces an earlier report
  EXPECT_FALSE(std::filesystem::exists(folder / "report/figures/old.svg"));
  for (const char* name :
       {"index.html", "report.json", "figures/L99-made-up-1.svg", "figures/L99-made-up-1.png", "figures/L99-made-up-2-02.png"})
    EXPECT_TRUE(std::filesystem::exists(folder / "report" / name)) << name;
  const Image image = read_image(folder / "report/figures/L99-made-up-1.png");
  EXPECT_GT(image.width, 800);
  EXPECT_GT(std::set<uint8_t>(image.pixels.begin(), image.pixels.end()).size(), 20u);
  std::filesystem::create_directory(folder / "other");
  put(folder / "other/letter.txt", "dear");
  expect_error<UsageError>([&] { ReportFolder(folder / "other"); }, "contains files other than a lab report");
  EXPECT_EQ(get(folder / "other/letter.txt"), "dear");
}

TEST(Lab, the_terminal_shows_claims_numbers_and_figures) {
  std::ostringstream out;
  print_result(out, example_result(), {});
  for (const char* words :
       {"L99  A <title> & more", "holds", "It is so: a < b.", "setup: Two numbers a and b.", "a/b ≤ 1", "100 ± 2 %", "✓", "β = 1", "█"})
    EXPECT_NE(out.str().find(words), std::string::npos) << words << "\n" << out.str();
  EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace heed::test
