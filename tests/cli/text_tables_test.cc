// Tables and text files in heed train, data look, eval and predict.
#include <sstream>

#include "heed/io/image.h"
#include "heed/io/json.h"
#include "tests/cli/program.h"
#include "tests/data/idx_files.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

void expect_says(const std::string& text, const std::string& fragment) { EXPECT_NE(text.find(fragment), std::string::npos) << text; }

void expect_refused_by_heed(const std::string& arguments, int exit_code, const std::string& fragment) {
  const ProgramResult ran = run_heed(arguments);
  EXPECT_EQ(ran.exit_code, exit_code) << arguments << "\n" << ran.out << ran.err;
  expect_says(ran.err, fragment);
}

constexpr const char* kTiny = " layers=1 heads=2 width=16 feed_forward=16 epochs=1 batch=16 vocabulary=120 max_length=32 ";

std::string pairs_of_numbers(char between, const std::string& header) {
  const char* ones[] = {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  const char* eins[] = {"eins", "zwei", "drei", "vier", "funf", "sechs", "sieben", "acht", "neun"};
  std::string out = header;
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 9; ++j) out += std::string(ones[i]) + " and " + ones[j] + between + eins[i] + " und " + eins[j] + "\n";
  return out;
}

TEST(TextTableProgram, translation_is_trained_and_evaluated_from_a_table) {
  const Folder folder;
  const std::string runs = " --runs '" + folder.path().string() + "' ", tsv = folder / "pairs.tsv", csv = folder / "pairs.csv.gz";
  put(tsv, pairs_of_numbers('\t', ""));
  put(csv, packed(pairs_of_numbers(',', "English,German\n")));
  const ProgramResult by_position = run_heed("train translate data=" + tsv + kTiny + runs);
  ASSERT_EQ(by_position.exit_code, 0) << by_position.err;
  expect_says(by_position.out, "translate: 73 to train on, 8 to validate on");
  expect_says(by_position.out, "columns of " + tsv + ": source_column=1, target_column=2\n");
  expect_says(get(folder / "translate/001/log.txt"), "source_column=1, target_column=2");
  const ProgramResult by_name = run_heed("train translate data=" + csv + kTiny + "source_column=german target_column=english" + runs);
  ASSERT_EQ(by_name.exit_code, 0) << by_name.err;
  expect_says(by_name.out, "columns of " + csv + ": source_column=German, target_column=English\n");
  expect_refused_by_heed("train translate data=" + csv + kTiny + "source_column=french" + runs, 2,
                         "found no column \"french\" (source_column)");

  const std::string model = folder / "translate/001/best";
  const ProgramResult evaluated = run_heed("eval " + model + " " + csv + " --length 4");
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  expect_says(evaluated.out, "81 translations\ncolumns of " + csv + ": source_column=English, target_column=German\n");
  const ProgramResult json = run_heed("eval " + model + " " + csv + " --length 4 source_column=2 --target-column 1 --json");
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(Json::parse(json.out)["columns"], (Json{{"source_column", "German"}, {"target_column", "English"}}));

  expect_says(output_of_heed("data look " + csv), ": 81 pairs\ncolumns of " + csv + ": source_column=English, target_column=German\n");
  expect_says(output_of_heed("data look " + tsv), "source_column=1, target_column=2\n");
  const Json look = Json::parse(output_of_heed("data look --json " + csv + " source=german target=english"));
  EXPECT_EQ(look["columns"]["source_column"], "German");
  EXPECT_EQ(look["pairs"], 81);
}

TEST(TextTableProgram, data_look_reads_the_tables_of_train) {
  const Folder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  put(path("a.csv"), "id,Review,stars\n1,a fine film,5\n2,a dull film,1\n3,fine,5\n");
  expect_says(output_of_heed("data look " + path("a.csv")),
              "3 labelled texts, 2 labels\ncolumns of " + path("a.csv") + ": text_column=Review, label_column=stars\n");
  const Json json = Json::parse(output_of_heed("data look " + path("a.csv") + " label_column=id --json"));
  EXPECT_EQ(json["columns"], (Json{{"text_column", "Review"}, {"label_column", "id"}}));
  expect_refused_by_heed("data look " + path("a.csv") + " text=Review", 2, "expected text_column=NAME");
  std::filesystem::create_directories(folder / "pairs");
  put(folder / "pairs/train.en", "one\ntwo\n");
  put(folder / "pairs/train.de", "eins\nzwei\n");
  put(folder / "pairs/val.en", "three\n");
  put(folder / "pairs/val.de", "drei\n");
  EXPECT_EQ(Json::parse(output_of_heed("data look --json " + path("pairs") + " source=en target=de"))["samples"][1]["target"], "zwei");
  EXPECT_EQ(Json::parse(output_of_heed("data look --json " + path("pairs")))["pairs"], 2);
  std::filesystem::create_directories(folder / "plain");
  put(folder / "plain/a.txt", "One. Two.\n\nThree.\n");
  EXPECT_EQ(Json::parse(output_of_heed("data look --json " + path("plain")))["sentences"], 3);
  std::filesystem::create_directories(folder / "table");
  put(folder / "table/train.jsonl", "{\"premise\": \"a b\", \"hypothesis\": \"c d\", \"label\": 1}\n");
  expect_says(output_of_heed("data look " + path("table")), "text_column=premise, pair_column=hypothesis, label_column=label\n");
}

TEST(TextTableProgram, train_and_eval_print_the_columns_they_read) {
  const Folder folder;
  std::string rows = "Stars;Posted;Review Text\n";
  for (int i = 0; i < 40; ++i) rows += std::string(i % 2 ? "5" : "1") + ";2020;" + (i % 2 ? "a fine, good film\n" : "a bad, dull film\n");
  const std::string csv = folder / "reviews.csv";
  put(csv, "\xEF\xBB\xBF" + rows);
  const ProgramResult ran = run_heed("train sentiment data=" + csv + kTiny + " --runs '" + folder.path().string() + "'");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  expect_says(ran.out, "columns of " + csv + ": text_column=Review Text, label_column=Stars\n");
  const std::string model = folder / "sentiment/001/best";
  for (const char* words :
       {"", "text_column=3 label_column=stars", "--text-column 3 --label-column 1", "--text 'Review Text' --label Stars"}) {
    const ProgramResult evaluated = run_heed("eval " + model + " " + csv + " " + words);
    EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
    expect_says(evaluated.out, "40 sentences\ncolumns of " + csv + ": text_column=Review Text, label_column=Stars\n");
  }
  for (const char* command : {"eval", "predict", "embed", "generate", "translate"})
    expect_says(run_heed(command + std::string(" --help")).out, "--text-column COLUMN");
  expect_refused_by_heed("eval " + model + " " + csv + " stars", 2, "eval: found \"stars\", expected text_column=NAME");
  expect_refused_by_heed("eval " + model + " " + csv + " source_column=1", 2, "eval: found --source-column, which does not apply to");
}

// A run is trained on columns that would not be chosen by name or contents.
struct RunOfNamedColumns : testing::Test {
  void SetUp() override {
    std::string rows = "text,note,label,verdict\n";
    for (int i = 0; i < 40; ++i) rows += "an opening phrase," + std::string(i % 2 ? "a fine film,x,good\n" : "a dull film,y,bad\n");
    put(csv, rows);
    const ProgramResult ran =
        run_heed("train sentiment data=" + csv + kTiny + "text_column=note label_column=verdict --runs '" + folder.path().string() + "'");
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  const Folder folder;
  const std::string csv = folder / "named.csv", run = folder / "sentiment/001";
};

TEST_F(RunOfNamedColumns, is_evaluated_on_them) {
  const std::string as_trained = "columns of " + csv + ": text_column=note, label_column=verdict\n";
  for (const char* model : {"", "/best"}) expect_says(output_of_heed("eval " + run + model + " " + csv), as_trained);
  std::filesystem::copy(folder / "sentiment/001/best", folder / "copy", std::filesystem::copy_options::recursive);
  expect_refused_by_heed("eval " + (folder / "copy").string() + " " + csv, 3, "found the label \"");
  expect_refused_by_heed("eval " + run + " " + csv + " label_column=label", 3, "found the label \"");
  const ProgramResult predicted = run_heed("predict " + run + " " + csv);
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  expect_says(predicted.err, "columns of " + csv + ": text_column=note\n");
  expect_says(run_heed("predict " + run + " " + csv + " text_column=text").err, "columns of " + csv + ": text_column=text\n");
  expect_says(run_heed("predict " + run + " 'a fine film'").out, "%  a fine film\n");
  // Columns of other names are found as for any model, and a first row without names is no header.
  const std::string other = folder / "other.csv", bare = folder / "bare.csv";
  put(other, "Review,stars\na fine film,good\na dull film,bad\n");
  put(bare, "a fine film,good\na dull film,bad\n");
  expect_says(output_of_heed("eval " + run + " " + other),
              "2 sentences\ncolumns of " + other + ": text_column=Review, label_column=stars\n");
  expect_says(output_of_heed("eval " + run + " " + bare), "2 sentences\ncolumns of " + bare + ": text_column=1, label_column=2\n");
}

TEST_F(RunOfNamedColumns, settings_are_not_taken_for_data) {
  const std::string as_asked = "columns of " + csv + ": text_column=text, label_column=verdict\n";
  expect_says(output_of_heed("eval " + run + " text_column=text " + csv), as_asked);
  expect_says(output_of_heed("eval " + run + " text_column=text label_column=verdict " + csv), as_asked);
  expect_refused_by_heed("eval " + run + " text_column=text", 2, "eval: found \"text_column=text\" without DATA, expected both; a run");
  expect_refused_by_heed("eval " + run + " text_colum=text " + csv, 2, "eval: found \"text_colum=text\", expected text_column=NAME");
  expect_says(output_of_heed("eval " + run + " --part validation"), "4 items, validation part of " + run);
}

std::string scored(int rows, int values) {
  std::string out = "text,score\n";
  for (int i = 0; i < rows; ++i) out += "film number " + std::to_string(i) + "," + std::to_string(1.0 + 0.07 * (i % values)) + "\n";
  return out;
}

TEST(TextTableProgram, labels_that_are_scores_are_refused_or_warned_about) {
  const Folder folder;
  const std::string once = folder / "once.csv", repeated = folder / "repeated.csv", runs = " --runs '" + folder.path().string() + "'";
  put(once, scored(40, 40));
  put(repeated, scored(120, 40));
  const std::string problem = once + ": found 40 different labels in 40 rows, 40 of them in one row only",
                    advice = "choose another column with label_column=NAME, or replace numbers by classes";
  expect_refused_by_heed("train sentiment data=" + once + kTiny + runs, 3, problem);
  expect_refused_by_heed("train sentiment data=" + once + kTiny + runs, 3, advice);
  const ProgramResult looked = run_heed("data look " + once);
  EXPECT_EQ(looked.exit_code, 0) << looked.err;
  expect_says(looked.err, "heed: warning: " + problem);
  expect_says(looked.err, advice);
  const ProgramResult trained = run_heed("train sentiment data=" + repeated + kTiny + runs);
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  expect_says(trained.out, "warning: 40 different labels in 120 rows are numbers with fractions");
  expect_says(run_heed("data look " + repeated).err, "numbers with fractions");
}

TEST(TextTableProgram, two_thousand_labels_are_trained_evaluated_and_reported) {
  const Folder folder;
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 4000; ++i) rows += "number " + std::to_string(i % 2000) + " of them\tclass " + std::to_string(i % 2000) + "\n";
  const std::string tsv = folder / "many.tsv";
  put(tsv, rows);
  const ProgramResult ran =
      run_heed("train sentiment data=" + tsv + " limit=4000 validation=0.5 layers=1 heads=1 width=8 feed_forward=8 epochs=1 batch=500" +
               " vocabulary=60 tokenizer=characters --runs '" + folder.path().string() + "'");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Path run = folder / "sentiment/001";
  const Json evaluation = read_json(run / "evaluation.json");
  EXPECT_EQ(evaluation["detail"]["class_count"], 2000);
  EXPECT_EQ(evaluation["detail"]["per_class"].size(), 1000u);
  EXPECT_GT(evaluation["detail"]["most_confused"].size(), 10u);
  expect_says(get(run / "report.html"), "1000 of 2000, those with the most samples");
  expect_says(get(run / "report.html"), "Most frequent mistakes");
  EXPECT_EQ(run_heed("report " + run.string() + " -o " + (folder / "page.html").string()).exit_code, 0);
  const ProgramResult evaluated = run_heed("eval " + (run / "best").string() + " " + tsv + " --confusion");
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  expect_says(evaluated.out, "... and 1800 more classes; --json lists 1000 of them\n");
  expect_says(evaluated.out, "count  truth -> guess\n");
  EXPECT_LT(evaluated.out.size(), 40'000u);
}

struct Predicting : TextFolder {
  Predicting() : TextFolder("bert-sentiment") {
    change("id2label", {{"0", "bad"}, {"1", "good"}});
    predict = "predict " + path().string() + " ";
  }
  std::string file(const std::string& name, const std::string& text) const {
    put(path() / name, text);
    return (path() / name).string();
  }
  std::string predict;
};

TEST(TextTableProgram, predict_reads_tables_and_keeps_their_columns) {
  const Predicting here;
  const std::string csv = here.file("r.csv", "id,Review,label\n7,\"hello, a!\",x\n8,a,y\n"), out = here / "out.csv";
  const ProgramResult table = run_heed(here.predict + csv);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  expect_says(table.err, "heed: predict reads the file " + csv + "\nheed: columns of " + csv + ": text_column=Review\n");
  expect_says(table.out, "%  hello, a!\n");
  const ProgramResult plain = run_heed(here.predict + "'hello, a!' a --json"), json = run_heed(here.predict + "--json " + csv);
  std::istringstream lines(json.out), expected(plain.out);
  for (std::string line, other; std::getline(lines, line) && std::getline(expected, other);) {
    Json found = Json::parse(line);
    EXPECT_EQ(found["columns"]["Review"], found["text"]);
    EXPECT_TRUE(found["columns"].contains("id"));
    found.erase("columns");
    EXPECT_EQ(found, Json::parse(other));
  }
  const ProgramResult written = run_heed(here.predict + csv + " -o " + out);
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, out + ": 2 rows\n");
  const std::string text = get(out);
  expect_says(text, "id,Review,label,predicted_label,probability\n7,\"hello, a!\",x,");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);

  const std::string jsonl = here.file("r.jsonl.gz", packed("{\"z\": [1], \"text\": \"a\"}\n")), lined = here / "out.jsonl";
  EXPECT_EQ(run_heed(here.predict + jsonl + " --top 2 -o " + lined).exit_code, 0);
  const auto row = nlohmann::ordered_json::parse(get(lined));
  std::vector<std::string> keys;
  for (const auto& [key, value] : row.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"z", "text", "label", "probability", "label_2", "probability_2"}));
  const std::string tsv = here.file("two.tsv", "hello\ta\na\thello\n");
  EXPECT_EQ(run_heed(here.predict + "--pairs --json --file " + tsv).exit_code, 0);
  expect_says(run_heed(here.predict + tsv + " text_column=2").err, "text_column=2\n");
  expect_says(run_heed(here.predict + "--file " + tsv + " --text-column 1 --pair-column 2").err, "text_column=1, pair_column=2\n");
  expect_refused_by_heed(here.predict + csv + " text_column=none", 2, "found no column \"none\" (text_column)");
  expect_refused_by_heed(here.predict + csv + " text_colum=Review", 2,
                         "expected one file alone, or sentences; did you mean 'text_column'?");
  expect_refused_by_heed(here.predict + "a text_column=b", 2, "found a column name without a table");
  expect_refused_by_heed(here.predict + "a -o out.txt", 2, "expected a name that ends in .csv, .tsv or .jsonl");
}

TEST(TextTableProgram, predict_reads_files_given_as_arguments) {
  const Predicting here;
  const std::string txt = here.file("s.txt", "hello\na\n"), packed_txt = here.file("s.txt.gz", packed("hello\na\n"));
  const std::string expected = run_heed(here.predict + "hello a").out;
  for (const std::string& file : {txt, packed_txt}) {
    const ProgramResult ran = run_heed(here.predict + file);
    EXPECT_EQ(ran.out, expected) << ran.err;
    EXPECT_EQ(ran.err, "heed: predict reads the file " + file + ", one sentence per line\n");
  }
  expect_refused_by_heed(here.predict + "hello " + txt, 2, "found the file \"" + txt + "\" among 2 arguments");
  write_png(here / "photo.png", Image{2, 2, std::vector<uint8_t>(12, 9)});
  for (const char* command : {"predict ", "embed ", "tokenize "})
    expect_refused_by_heed(command + here.path().string() + " " + (here / "photo.png").string(), 3, "photo.png: found a PNG image");
  expect_refused_by_heed(here.predict + "--file " + (here / "photo.png").string(), 3, "photo.png: found a PNG image");
  const ProgramResult word = run_heed(here.predict + (here / "config.json").string());
  EXPECT_EQ(word.exit_code, 0);
  expect_says(word.err, "config.json\" is read as a sentence, but there is a file of that name; --file reads it");
  EXPECT_EQ(run_heed("embed " + here.path().string() + " --json " + txt).out,
            run_heed("embed " + here.path().string() + " --json hello a").out);
  const std::string tokens = run_heed("tokenize " + here.path().string() + " --ids " + txt).out;
  EXPECT_EQ(tokens, run_heed("tokenize " + here.path().string() + " --ids hello a").out);
}

TEST(TextTableProgram, bombs_and_endless_fields_are_refused) {
  const Predicting here;
  std::string bomb, zeros = packed(std::string(40 << 20, 'x'));
  for (int i = 0; i < 25; ++i) bomb += zeros;
  for (const char* name : {"bomb.csv.gz", "bomb.txt.gz"})
    expect_refused_by_heed(here.predict + here.file(name, bomb), 3, std::string(name) + ": ");
  expect_refused_by_heed("data look " + here.file("bomb.tsv.gz", bomb), 3, "bomb.tsv.gz: the first ");
  const std::string large = here.file("large.csv", "text,label\na,0\n" + std::string(50 << 20, 'x') + ",1\n");
  expect_refused_by_heed("data look " + large, 3, "large.csv:3: found a field of more than 4194304 bytes");
}

}  // namespace
}  // namespace heed::test
