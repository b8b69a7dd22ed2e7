// The report page from hand-written files: every section is present, damaged files are named.
#include "heed/train/report_run.h"
#include "heed/train/sample_json.h"
#include "tests/cli/program.h"
#include "tests/expect_error.h"
#include "tests/train/report_files.h"

namespace heed::test {
namespace {

TEST(Report, the_tag_checker_finds_mistakes) {
  EXPECT_EQ(imbalance("<p>a<br><i class=\"x\"></i></p>"), "");
  EXPECT_EQ(imbalance("<p><i></p></i>"), "</p> closes i");
  EXPECT_EQ(imbalance("<p>"), "<p> is never closed");
  EXPECT_EQ(imbalance("<p class=\"a>b</p>"), "a quote too many in <p class=\"a");
}

TEST(Report, a_run_with_everything_shows_everything) {
  const Folder box;
  const Path run = put_run(box, "first", 31, "0.01", {image_sample("cat", "cat"), image_sample("cow", kHostile)});
  const std::string page = page_of({run});
  expect_sound(page);
  for (const char* part : {"curves", "classes", "samples", "speed", "costs", "settings", "log"})
    EXPECT_TRUE(has(page, "<section id=\"" + std::string(part) + "\"") && has(page, "href=\"#" + std::string(part) + "\"")) << part;
  for (const char* text :
       {"81.2 %", "0.4322", "vit-tiny", "5.52 M", "1.00 G", "Learning rate", "Samples per second", "834", "Confusion", "Calibration",
        "worst first", "<td>10</td>", "<td>30</td>", "<td>31 <span class=\"tag given\">best</span> <span class=\"tag\">last</span></td>",
        "0.0833", "98.0 %", "61", "0.01", "first line"})
    EXPECT_TRUE(has(page, text)) << text;
  EXPECT_FALSE(has(page, "<td>50</td>"));
  EXPECT_TRUE(has(page, escape_markup(kHostile) + " predicted as cow: 1 (1.89 %)"));
  EXPECT_TRUE(has(page, R"(&lt;b&gt;#1\&quot;&lt;/b&gt;)"));  // a hash in quotes does not start a comment
  // Each image twice, plain and under its attention map, which is another image.
  size_t images = 0;
  for (size_t at = page.find("<img"); at != page.npos; at = page.find("<img", at + 1)) ++images;
  EXPECT_EQ(images, 6u);
}

TEST(Report, attention_is_drawn_on_texts_and_between_them) {
  const Folder box;
  const std::string page = page_of({put_run(box, "words", 3, "0.01", {text_sample()})});
  expect_sound(page);
  EXPECT_TRUE(has(page, "style=\"--w:1\" title=\"60.0 %\">fine</span>"));
  EXPECT_TRUE(has(page, "style=\"--w:0.333\" title=\"20.0 %\">film</span>"));
  const std::string translation = page_of({put_run(box, "pairs", 3, "0.01", {translation_sample()})});
  expect_sound(translation);
  for (const char* text : {"<dd>A dog</dd>", "<dt>source</dt>", "<dt>translation</dt>", "<dd>Ein Hund .</dd>", "<dd>Ein großer Hund .</dd>",
                           "Hund from dog: 80.0 %", "fill-opacity=\"0.9\""})
    EXPECT_TRUE(has(translation, text)) << text;
}

TEST(Report, several_runs_are_side_by_side) {
  const Folder box;
  const Path a = put_run(box, "slow", 12, "0.01", {}), b = put_run(box, "quick", 31, "0.03", {text_sample()});
  const std::string page = page_of({a, b});
  expect_sound(page);
  for (const char* text :
       {"2 runs side by side", "slow", "quick", "What differs", "<th scope=\"row\">learning.rate</th><td>0.01</td><td>0.03</td>",
        "data-run=\"1\"", "line run1 c1 thick", "line run0 c0 thin"})
    EXPECT_TRUE(has(page, text)) << text;
  EXPECT_FALSE(has(page, "<th scope=\"row\">learning.epochs</th>"));
}

TEST(Report, a_new_run_says_what_is_missing) {
  const Folder box;
  const Path run = box.path() / "classify" / "new";
  std::filesystem::create_directories(run);
  put(run / "config.toml", "task = \"classify\"\n");
  const std::string page = page_of({run});
  expect_sound(page);
  for (const char* file : {"metrics.jsonl", "evaluation.json", "samples.json", "speed.csv", "costs.json", "log.txt"})
    EXPECT_TRUE(has(page, "There is no " + std::string(file) + " in this folder")) << file;
  put_metrics(run, 1);  // one epoch: dots and steps
  expect_sound(page_of({run}));
}

TEST(Report, damaged_files_are_named) {
  const Folder box;
  const Path run = put_run(box, "bad", 2, "0.01", {});
  expect_refused([&] { page_of({box / "nowhere"}); }, "nowhere: found no folder, expected a run folder");
  expect_refused([&] { page_of({box.path()}); }, "found none of config.toml, metrics.jsonl and evaluation.json");
  const auto named = [&](const std::string& message) {
    const std::vector<std::string> damaged = read_run(run).damaged;
    ASSERT_EQ(damaged.size(), 1u);
    EXPECT_TRUE(has(damaged[0], message)) << damaged[0];
    const std::string page = page_of({run});
    expect_sound(page);
    EXPECT_TRUE(has(page, "Damaged files")) << message;
  };
  put(run / "metrics.jsonl", "{\"kind\": \"epoch\", \"epoch\": 1, \"step\": 2}\n{\"epoch\": 1}\n");
  named("metrics.jsonl: line 2: found no kind, expected step or epoch");
  put(run / "metrics.jsonl", "{\"kind\": \"epoch\", \"epoch\": 1e300, \"step\": 2}\n");
  named("metrics.jsonl: line 1: found the epoch 1e+300, expected at most 2^53");
  put_metrics(run, 2);
  put(run / "speed.csv", "epoch,step\n1,-1e300\n");
  named("speed.csv: line 2: found the step -1e+300, expected at most 2^53");
  put(run / "speed.csv", "epoch,step\n1,2\n1\n");
  named("speed.csv: line 3: found 1 cells, expected 2");
  std::filesystem::remove(run / "speed.csv");
  put(run / "samples.json", R"([{"truth": "a", "map_rows": 2, "map_columns": 2, "map": [1, 2, 3]}])");
  named("samples.json: sample 1: sample: found 3 weights, expected 2 rows of 2");
  put(run / "samples.json", R"([{"truth": "a", "image": "?"}])");
  named("samples.json: sample 1: image: found \"?\", expected base64");
  put(run / "samples.json", R"([{"truth": 1}])");
  named("samples.json: sample 1: sample: truth is \"1\", expected a string");
  put(run / "samples.json", "[]");
  put(run / "evaluation.json", R"({"figures": 3, "detail": {"classes": ["a"], "confusion": [[1, 2]], "per_class": 7}})");
  put(run / "costs.json", R"({"layers": [{"name": 3}, 4]})");
  expect_sound(page_of({run}));
  put(run / "metrics.jsonl", R"({"kind": "epoch", "epoch": 1, "step": 1, "train_loss": 1e17}
{"kind": "epoch", "epoch": 2, "step": 2, "train_loss": 100000000000000016}
)");  // there is no round number between them
  expect_sound(page_of({run}));
  expect_error<UsageError>([] { report_page({}); }, "report: found 0 run folders, expected 1 or more");
}

TEST(Report, samples_survive_json) {
  for (const Sample& sample : {image_sample("a", "b"), text_sample(), translation_sample(), sample_of("x", "x", 1)}) {
    const Sample back = Json(sample).get<Sample>();
    EXPECT_EQ(back.truth, sample.truth);
    EXPECT_EQ(back.guess, sample.guess);
    EXPECT_EQ(back.source, sample.source);
    EXPECT_EQ(back.score, sample.score);
    EXPECT_EQ(back.right, sample.right);
    EXPECT_EQ(back.image.width, sample.image.width);
    EXPECT_EQ(back.image.pixels, sample.image.pixels);
    EXPECT_EQ(back.rows, sample.rows);
    EXPECT_EQ(back.columns, sample.columns);
    EXPECT_EQ(back.map_rows, sample.map_rows);
    EXPECT_EQ(back.map, sample.map);
  }
  for (const std::string text : {"", "a", "ab", "abc", "\xff\x01\x80z"})
    EXPECT_EQ(from_base64(base64(std::as_bytes(std::span(text)))).value().size(), text.size());
  const std::string bytes = "\xff\x01\x80z";
  const std::vector<std::byte> back = from_base64("/wGAeg==").value();
  EXPECT_TRUE(std::equal(back.begin(), back.end(), std::as_bytes(std::span(bytes)).begin()));
  EXPECT_FALSE(from_base64("abc").has_value());
  EXPECT_FALSE(from_base64("ab*=").has_value());
}

TEST(Program, report_writes_the_page) {
  const Folder box;
  const Path a = put_run(box, "a", 3, "0.01", {}), b = put_run(box, "b", 3, "0.02", {});
  EXPECT_EQ(output_of_heed("report '" + a.string() + "'"), (a / "report.html").string() + "\n");
  EXPECT_EQ(get(a / "report.html"), page_of({a}));
  const Path both = box / "both.html";
  EXPECT_EQ(output_of_heed("report '" + a.string() + "' '" + b.string() + "' -o '" + both.string() + "'"), both.string() + "\n");
  EXPECT_EQ(get(both), page_of({a, b}));
  EXPECT_EQ(run_heed("report '" + (box / "none").string() + "'").exit_code, 3);
  EXPECT_EQ(run_heed("report").exit_code, 2);
}

TEST(Sample, is_read_under_the_name_of_its_image_that_older_versions_used) {
  const Sample sample{.truth = "a", .guess = "a", .image = {.width = 2, .height = 1, .pixels = {1, 2, 3, 4, 5, 6}}};
  Json json = sample;
  json["picture"] = json.at("image");  // of older versions
  json.erase("image");
  EXPECT_EQ(json.get<Sample>().image.pixels, sample.image.pixels);
}

}  // namespace
}  // namespace heed::test
