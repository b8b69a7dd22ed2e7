// The page about a run: made from files written by hand, and looked at as a browser would: tags in balance, every part there,
// nothing from elsewhere, and names that are markup shown as text.
#include "heed/train/report.h"

#include <gtest/gtest.h>

#include <set>

#include "heed/io/markup.h"
#include "heed/train/report_run.h"
#include "heed/train/sample_json.h"
#include "tests/cli/program.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

const std::string kHostile = "<script>alert('x')</script>\"&";

// Empty where every tag is closed in order and every attribute is quoted; else what is wrong.
std::string imbalance(const std::string& page) {
  const std::set<std::string> empty{"!doctype", "meta", "img", "input", "br", "wbr"};
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != page.npos; at = page.find('<', at)) {
    const size_t end = page.find('>', at);
    if (end == page.npos) return "a tag without end";
    const bool closes = page[at + 1] == '/', alone = page[end - 1] == '/';
    const std::string inside = page.substr(at + 1 + closes, end - at - 1 - closes), name = inside.substr(0, inside.find_first_of(" /\n"));
    if (std::count(inside.begin(), inside.end(), '"') % 2 != 0 || inside.find('<') != inside.npos) return "a quote too many in <" + inside;
    at = end;
    if (closes) {
      if (open.empty() || open.back() != name) return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if (!alone && !empty.contains(name)) {
      open.push_back(name);
      if (name == "script" || name == "style") at = page.find("</" + name, end);  // not markup
      if (at == page.npos) return "<" + name + "> without end";
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

Sample sample_of(const std::string& truth, const std::string& guess, double score) {
  return {.truth = truth, .guess = guess, .score = score, .right = truth == guess};
}

Sample picture_sample(const std::string& truth, const std::string& guess) {
  Sample out = sample_of(truth, guess, 0.875);
  out.picture = {.width = 5, .height = 4, .pixels = std::vector<uint8_t>(60)};
  for (size_t i = 0; i < 60; ++i) out.picture.pixels[i] = static_cast<uint8_t>(4 * i);
  out.map_rows = 2;
  out.map_columns = 3;
  out.map = {0.1f, 0.2f, 0.1f, 0.3f, 0.2f, 0.1f};
  return out;
}

Sample text_sample() {
  Sample out = sample_of("good", "bad", 0.75);
  out.rows = {"all"};
  out.columns = {"a", "fine", "film", kHostile};
  out.map_rows = 1;
  out.map_columns = 4;
  out.map = {0.1f, 0.6f, 0.2f, 0.1f};
  return out;
}

Sample translation_sample() {
  Sample out = sample_of("Ein großer Hund .", "Ein Hund .", 0.5);
  out.rows = {"Ein", "Hund", "."};
  out.columns = {"A", "dog"};
  out.map_rows = 3;
  out.map_columns = 2;
  out.map = {0.9f, 0.1f, 0.2f, 0.8f, 0.5f, 0.5f};
  return out;
}

void put_metrics(const Path& folder, int epochs) {
  std::string lines;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    const Json step{{"kind", "step"}, {"epoch", epoch}, {"step", 10 * epoch}, {"train_loss", 2.0 / epoch}, {"rate", 0.001 * epoch}};
    const Json row{{"kind", "epoch"},
                   {"epoch", epoch},
                   {"step", 10 * epoch},
                   {"train_loss", 2.0 / epoch},
                   {"validation_loss", 2.5 / epoch},
                   {"train_accuracy", 1 - 0.5 / epoch},
                   {"validation_accuracy", epoch == 2 ? Json() : Json(1 - 0.6 / epoch)}};
    lines += step.dump() + "\n" + row.dump() + "\n";
  }
  put(folder / "metrics.jsonl", lines + R"({"kind": "st)");  // the run is writing this one
}

Path put_run(const Folder& box, const std::string& name, int epochs, const std::string& rate, const std::vector<Sample>& samples) {
  const Path folder = box.path() / "classify" / name;
  std::filesystem::create_directories(folder);
  put_metrics(folder, epochs);
  put(folder / "config.toml", "# all\ntask = \"classify\"\ndata = \"" + std::string(R"(<b>#1\"</b>)") +
                                  "\" # where\npreset = 'vit-tiny'\n\n[learning]\nrate = " + rate + "\nepochs = 31\n");
  put(folder / "speed.csv", "epoch,step,samples_per_second,share_of_peak,seconds\n1,10,812.25,0.5,1\n2,20,834.5,0.52,1\n");
  const std::vector<std::string> classes{"cat", kHostile, "cow"};
  write_json(folder / "evaluation.json",
             {{"part", "test"},
              {"figures", {{"accuracy", 0.8125}, {"loss", 0.43219}, {"f1", 0.8}}},
              {"detail",
               {{"classes", classes},
                {"confusion", {{61, 2, 0}, {5, 47, 1}, {0, 7, 39}}},
                {"per_class", {{{"class", kHostile}, {"precision", 0.839}, {"recall", 0.887}, {"f1", 0.8623}, {"count", 53}}}},
                {"calibration", {{{"confidence", 0.95}, {"accuracy", 0.9}, {"count", 120}}}}}}});
  write_json(folder / "samples.json", Json(samples));
  write_json(folder / "costs.json", {{"layers", {{{"name", kHostile}, {"parameters", 5524416}, {"multiply_adds", 1e9}, {"bytes", 4096}}}}});
  put(folder / "log.txt", "first line\n" + kHostile + "\n");
  return folder;
}

std::string page_of(std::vector<Path> runs) { return report_page(runs); }

bool has(const std::string& page, const std::string& text) { return page.find(text) != page.npos; }

void expect_sound(const std::string& page) {
  EXPECT_EQ(imbalance(page), "");
  for (const char* elsewhere : {"http://", "https://", "url(", "@import", "<link", "src=\"/"})
    EXPECT_FALSE(has(page, elsewhere)) << elsewhere;
  EXPECT_FALSE(has(page, "alert('x')"));
  for (const char* number : {">nan", "\"nan", ":nan", "Mnan", " nan", "inf "}) EXPECT_FALSE(has(page, number)) << number;
}

TEST(Report, the_checker_of_tags_sees_mistakes) {
  EXPECT_EQ(imbalance("<p>a<br><i class=\"x\"></i></p>"), "");
  EXPECT_EQ(imbalance("<p><i></p></i>"), "</p> closes i");
  EXPECT_EQ(imbalance("<p>"), "<p> is never closed");
  EXPECT_EQ(imbalance("<p class=\"a>b</p>"), "a quote too many in <p class=\"a");
}

TEST(Report, a_run_with_everything_shows_everything) {
  const Folder box;
  const Path run = put_run(box, "first", 31, "0.01", {picture_sample("cat", "cat"), picture_sample("cow", kHostile)});
  const std::string page = page_of({run});
  expect_sound(page);
  for (const char* part : {"curves", "classes", "samples", "speed", "costs", "settings", "log"})
    EXPECT_TRUE(has(page, "<section id=\"" + std::string(part) + "\"") && has(page, "href=\"#" + std::string(part) + "\"")) << part;
  for (const char* text :
       {"81.2 %", "0.4322", "vit-tiny", "5.52 M", "1.00 G", "Learning rate", "Samples a second", "834", "Confusion", "Calibration",
        "worst first", "<td>10</td>", "<td>30</td>", "<td>31 <span", "0.0833", "98.0 %", "61", "0.01", "first line"})
    EXPECT_TRUE(has(page, text)) << text;
  EXPECT_FALSE(has(page, "<td>50</td>"));
  EXPECT_TRUE(has(page, in_markup(kHostile) + " taken for cow: 1 (1.89 %)"));
  EXPECT_TRUE(has(page, R"(&lt;b&gt;#1\&quot;&lt;/b&gt;)"));  // a hash in quotes begins no comment
  // Twice each picture, plain and below its attention, which is another one.
  size_t pictures = 0;
  for (size_t at = page.find("<img"); at != page.npos; at = page.find("<img", at + 1)) ++pictures;
  EXPECT_EQ(pictures, 6u);
}

TEST(Report, attention_is_drawn_on_texts_and_between_them) {
  const Folder box;
  const std::string page = page_of({put_run(box, "words", 3, "0.01", {text_sample()})});
  expect_sound(page);
  EXPECT_TRUE(has(page, "style=\"--w:1\" title=\"60.0 %\">fine</span>"));
  EXPECT_TRUE(has(page, "style=\"--w:0.333\" title=\"20.0 %\">film</span>"));
  const std::string translation = page_of({put_run(box, "pairs", 3, "0.01", {translation_sample()})});
  expect_sound(translation);
  for (const char* text :
       {"<dd>A dog</dd>", "<dd>Ein Hund .</dd>", "<dd>Ein großer Hund .</dd>", "Hund from dog: 80.0 %", "fill-opacity=\"0.9\""})
    EXPECT_TRUE(has(translation, text)) << text;
}

TEST(Report, several_runs_stand_side_by_side) {
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

TEST(Report, a_run_that_has_only_begun_says_what_is_missing) {
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
  expect_refused([&] { page_of({box / "nowhere"}); }, "nowhere: found no folder, expected that of a run");
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
  put_metrics(run, 2);
  put(run / "speed.csv", "epoch,step\n1,2\n1\n");
  named("speed.csv: line 3: found 1 cells, expected 2");
  std::filesystem::remove(run / "speed.csv");
  put(run / "samples.json", R"([{"truth": "a", "map_rows": 2, "map_columns": 2, "map": [1, 2, 3]}])");
  named("samples.json: sample 1: sample: found 3 weights, expected 2 rows of 2");
  put(run / "samples.json", R"([{"truth": "a", "picture": "?"}])");
  named("samples.json: sample 1: picture: found \"?\", expected base64");
  put(run / "samples.json", R"([{"truth": 1}])");
  named("samples.json: sample 1: sample: found a member of the wrong kind");
  put(run / "samples.json", "[]");
  put(run / "evaluation.json", R"({"figures": 3, "detail": {"classes": ["a"], "confusion": [[1, 2]], "per_class": 7}})");
  put(run / "costs.json", R"({"layers": [{"name": 3}, 4]})");
  expect_sound(page_of({run}));
  put(run / "metrics.jsonl", R"({"kind": "epoch", "epoch": 1, "step": 1, "train_loss": 1e17}
{"kind": "epoch", "epoch": 2, "step": 2, "train_loss": 100000000000000016}
)");  // no round number lies between them
  expect_sound(page_of({run}));
  expect_error<UsageError>([] { report_page({}); }, "report: found 0 run folders, expected 1 or more");
}

TEST(Report, samples_come_back_from_json_as_they_went) {
  for (const Sample& sample : {picture_sample("a", "b"), text_sample(), translation_sample(), sample_of("x", "x", 1)}) {
    const Sample back = Json(sample).get<Sample>();
    EXPECT_EQ(back.truth, sample.truth);
    EXPECT_EQ(back.guess, sample.guess);
    EXPECT_EQ(back.score, sample.score);
    EXPECT_EQ(back.right, sample.right);
    EXPECT_EQ(back.picture.width, sample.picture.width);
    EXPECT_EQ(back.picture.pixels, sample.picture.pixels);
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
  EXPECT_EQ(said_by_heed("report '" + a.string() + "'"), (a / "report.html").string() + "\n");
  EXPECT_EQ(get(a / "report.html"), page_of({a}));
  const Path both = box / "both.html";
  EXPECT_EQ(said_by_heed("report '" + a.string() + "' '" + b.string() + "' -o '" + both.string() + "'"), both.string() + "\n");
  EXPECT_EQ(get(both), page_of({a, b}));
  EXPECT_EQ(run_heed("report '" + (box / "none").string() + "'").exit_code, 3);
  EXPECT_EQ(run_heed("report").exit_code, 2);
}

}  // namespace
}  // namespace heed::test
