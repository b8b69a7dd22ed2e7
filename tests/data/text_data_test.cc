#include "heed/data/text_data.h"

#include <gtest/gtest.h>

#include "heed/cli/data.h"
#include "heed/data/text_parts.h"
#include "heed/io/json.h"
#include "tests/data/idx_files.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

using Lines = std::vector<std::string>;

// "label|text" or "label|text|pair" for each row.
Lines shown(const std::vector<LabelledText>& rows) {
  Lines out;
  for (const LabelledText& row : rows) out.push_back(row.label + "|" + row.text + (row.pair ? "|" + *row.pair : ""));
  return out;
}
Lines tsv(const std::string& text, const TextColumns& columns = {}) {
  return shown(parse_labelled("f.tsv", text, TableKind::tsv, columns));
}
Lines csv(const std::string& text, const TextColumns& columns = {}) {
  return shown(parse_labelled("f.csv", text, TableKind::csv, columns));
}
Lines jsonl(const std::string& text, const TextColumns& columns = {}) {
  return shown(parse_labelled("f.jsonl", text, TableKind::jsonl, columns));
}

void expect_table_error(const std::string& text, TableKind kind, const std::string& message) {
  expect_refused([&] { parse_labelled("f", text, kind); }, message);
}

TEST(CompressedText, plain_and_gzip_files_give_the_same_text) {
  const Folder folder;
  const std::string text = "a\nb\xC3\xBC\n";
  put(folder / "plain", "\xEF\xBB\xBF" + text);
  put(folder / "one.gz", packed(text));
  put(folder / "two.gz", packed("a\n") + packed("") + packed("b\xC3\xBC\n"));
  for (const char* name : {"plain", "one.gz", "two.gz"}) EXPECT_EQ(read_text_or_gzip(folder / name), text) << name;
  put(folder / "empty", "");
  EXPECT_EQ(read_text_or_gzip(folder / "empty"), "");
  const std::string much(300'000, 'x');  // more than one chunk
  put(folder / "much.gz", packed(much));
  EXPECT_EQ(read_text_or_gzip(folder / "much.gz"), much);
}

TEST(CompressedText, truncated_or_damaged_data_is_refused) {
  const Folder folder;
  const std::string whole = packed("one line\nand another one\n");
  for (size_t size = 2; size < whole.size(); ++size) {
    put(folder / "cut.gz", whole.substr(0, size));
    expect_refused([&] { read_text_or_gzip(folder / "cut.gz"); }, "cut.gz: the gzip data is truncated after ");
  }
  for (size_t i = 10; i < whole.size(); ++i) {  // after gzip's header, whose time and system fields are arbitrary
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    put(folder / "damaged.gz", damaged);
    EXPECT_THROW(read_text_or_gzip(folder / "damaged.gz"), FileError) << i;
  }
  put(folder / "tail.gz", whole + "and more");
  expect_refused([&] { read_text_or_gzip(folder / "tail.gz"); }, "tail.gz: found 8 bytes after the gzip data");
  expect_refused([&] { read_text_or_gzip(folder / "none"); }, "none: there is no such file");
  expect_refused([&] { read_text_or_gzip(folder.path()); }, "found a folder");
}

TEST(CompressedText, decompression_bombs_are_refused) {
  const Folder folder;
  put(folder / "bomb.gz", packed(std::string(50 << 20, 'x')));
  expect_refused([&] { read_text_or_gzip(folder / "bomb.gz", 1000); }, "bomb.gz: found more than 1000 bytes after decompression");
  put(folder / "long", std::string(1001, 'x'));
  expect_refused([&] { read_text_or_gzip(folder / "long", 1000); }, "found 1001 bytes, expected at most 1000");
}

TEST(CompressedText, invalid_utf8_is_refused_with_its_line) {
  for (const char* good :
       {"", "abc", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_NO_THROW(expect_utf8("f", good)) << good;
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF\xFE"})
    EXPECT_THROW(expect_utf8("f", bad), FileError) << in_quotes(bad);
  const Folder folder;
  put(folder / "latin.tsv.gz", packed("0\tgut\n1\tsch\xF6n\n"));
  expect_refused([&] { read_labelled((folder / "latin.tsv.gz").string()); }, "latin.tsv.gz:2: found \"\\xf6n\\x0a\", expected UTF-8");
}

TEST(CompressedText, line_ends_are_removed) {
  const auto lines_of = [](std::string_view text) {
    Lines out;
    TextLines lines(text);
    for (std::string_view line; lines.next(line);) out.emplace_back(line);
    return out;
  };
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("\n"), Lines{""});
  EXPECT_EQ(lines_of("a\r\n\nb"), (Lines{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\n\n"), (Lines{"a", ""}));
  EXPECT_EQ(lines_of("a\nb\r\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\rb\n\n"), (Lines{"a\rb", ""}));
}

TEST(Labelled, columns_are_found_without_settings) {
  const Lines expected = {"0|a dull film", "1|a fine film", "1|fine"};
  EXPECT_EQ(tsv("0\ta dull film\n1\ta fine film\n1\tfine\n"), expected);
  EXPECT_EQ(tsv("a dull film\t0\r\na fine film \t1\r\n\r\nfine\t1"), expected);
  EXPECT_EQ(tsv("sentence\tlabel\na dull film\t0\na fine film \t1\nfine\t1\n"), expected);  // GLUE's
  EXPECT_EQ(tsv("label\tcontent\n0\ta dull film\n1\ta fine film\n1\tfine\n"), expected);
  EXPECT_EQ(tsv("Text\tSentiment\na dull film\t0\na fine film\t1\nfine\t1\n"), expected);
  EXPECT_EQ(tsv("label\tblurb\n0\ta dull film\n1\ta fine film\n1\tfine\n"), expected);
  EXPECT_EQ(tsv("id\treview\tgrade\n7\ta dull film\t0\n8\ta fine film\t1\n9\tfine\t1\n"), expected);
  EXPECT_EQ(tsv("train\t7\ta dull film\t0\ntrain\t8\ta fine film\t1\ntrain\t9\tfine\t1\n"), expected);
  EXPECT_EQ(csv("label,text\n0,a dull film\n1,a fine film\n1,fine\n"), expected);
  EXPECT_EQ(jsonl("{\"label\": 0, \"text\": \"a dull film\"}\n{\"text\": \" a fine film\", \"label\": 1, \"more\": []}\n{\"label\": \"1\", "
                  "\"text\": \"fine\"}\n"),
            expected);
  // No header: "text" is a cell like others.
  EXPECT_EQ(tsv("x\ttext\ny\ttext\nx\tanother one\n"), (Lines{"x|text", "y|text", "x|another one"}));
  EXPECT_EQ(tsv("a text\tx\n"), Lines{"x|a text"});
  EXPECT_EQ(tsv("x\tone\nx\ttwo\nx\tthree\n"), (Lines{"x|one", "x|two", "x|three"}));
}

TEST(Labelled, pairs_are_found_without_settings) {
  EXPECT_EQ(tsv("index\tsentence1\tsentence2\tlabel\n1\ta b\tc d\tno\n"), Lines{"no|a b|c d"});
  EXPECT_EQ(csv("premise,hypothesis,label\na b,c d,no\n"), Lines{"no|a b|c d"});
  EXPECT_EQ(tsv("index\tquestion\tsentence\tlabel\n1\ta b\tc d\tno\n"), Lines{"no|a b|c d"});
  EXPECT_EQ(csv("label,answer,question\nyes,c d,a b\n"), Lines{"yes|a b|c d"});
  EXPECT_EQ(tsv("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\ta b\tc d\n"), Lines{"1|a b|c d"});
  EXPECT_EQ(jsonl("{\"gold_label\": \"neutral\", \"sentence1\": \"a\", \"sentence2\": \"b\", \"annotators\": [1, 2]}"),
            Lines{"neutral|a|b"});
  EXPECT_EQ(jsonl("{\"text\": \"a\", \"text_pair\": \"b\", \"label\": true}"), Lines{"true|a|b"});
  EXPECT_EQ(tsv("x\ta b\tc d\ny\te f\tg h\nx\ti j\tk l\n"), (Lines{"x|a b|c d", "y|e f|g h", "x|i j|k l"}));
}

TEST(Labelled, columns_can_be_set) {
  const std::string text = "id,title,body,stars,label\n1,a b,c d,5,x\n2,e f,g h,4,y\n";
  EXPECT_EQ(csv(text, {.text = "title", .label = "stars"}), (Lines{"5|a b", "4|e f"}));
  EXPECT_EQ(csv(text, {.text = "Body", .pair = "title"}), (Lines{"x|c d|a b", "y|g h|e f"}));
  EXPECT_EQ(csv(text, {.text = "2", .label = "4"}), (Lines{"5|a b", "4|e f"}));
  EXPECT_EQ(csv("premise,hypothesis,label\na b,c d,no\n", {.text = "premise"}), Lines{"no|a b"});
  EXPECT_EQ(jsonl("{\"question\": \"a\", \"passage\": \"b\", \"answer\": true}", {.label = "answer"}), Lines{"true|a|b"});
  EXPECT_EQ(tsv("1\ta\tb\n2\tc\td\n", {.text = "3", .pair = "2", .label = "1"}), (Lines{"1|b|a", "2|d|c"}));
  expect_error<UsageError>(
      [&] { csv(text, {.text = "bodi"}); },
      "f.csv: found no column \"bodi\" (text_column), expected \"id\", \"title\", \"body\", \"stars\", \"label\" or a number from 1 to 5; "
      "did you mean 'body'?");
  expect_error<UsageError>([&] { tsv("0\ta\n", {.text = "3"}); },
                           "f.tsv: found no column \"3\" (text_column), expected a number from 1 to 2");
  expect_error<UsageError>([&] { tsv("0\ta\n", {.text = "1", .label = "1"}); }, "f.tsv: found the same column twice");
}

TEST(Labelled, csv_follows_rfc_4180) {
  EXPECT_EQ(csv("label,text\n0,\"a, b\"\n1,\"she said \"\"no\"\"\"\n"), (Lines{"0|a, b", "1|she said \"no\""}));
  EXPECT_EQ(csv("label,text\r\n0,\"two\r\nlines\"\r\n1,\"\n\nthree\"\r\n"), (Lines{"0|two\r\nlines", "1|three"}));
  EXPECT_EQ(csv("\"label\",\"text\"\n\"0\",\"\"\"\"\n1,x"), (Lines{"0|\"", "1|x"}));
  EXPECT_EQ(csv("label,text\n0,5\" wide\n"), Lines{"0|5\" wide"});  // a quote inside an unquoted cell is literal
  EXPECT_EQ(csv("label,text,more\n0,a,\n\n1,b,\"\""), (Lines{"0|a", "1|b"}));
  expect_table_error("label,text\n0,a\n1,\"never\nclosed\n", TableKind::csv, "f:3: found a quote that is not closed");
  const Lines two{"1|a fine film, all in all", "0|\"no\""};  // as spreadsheets write it in locales with decimal commas
  EXPECT_EQ(csv("label;text\n1;a fine film, all in all\n0;\"\"\"no\"\"\"\n"), two);
  EXPECT_EQ(csv("\"text, in short\";label\n\"a fine film, all in all\";1\r\n\"\"\"no\"\"\";0\r\n", {.text = "text, in short"}), two);
  EXPECT_EQ(csv("5\" wide;1\n6\" wide;2\n"), (Lines{"1|5\" wide", "2|6\" wide"}));
  expect_table_error("label;text\n0;a;b\n", TableKind::csv,
                     "f:2: found 3 columns, expected 2 as in line 1; this file is separated by semicolons");
  expect_table_error("bad, very bad;0\ngood;1\n", TableKind::csv,
                     "f:2: found 1 columns, expected 2 as in line 1; this file is separated by commas, not semicolons, because its first "
                     "row has a comma outside quotes");
  expect_table_error("label,text\n0,\"a\nb\"c\n", TableKind::csv, "f:3: found \"c\\x0a\" after a closing quote, expected a comma");
  expect_table_error("label,text\n0,\"a\nb\"\n1\n", TableKind::csv, "f:4: found 1 columns, expected 2 as in line 1");
  expect_table_error("label,text\n0,a,b\n", TableKind::csv, "f:2: found 3 columns, expected 2 as in line 1");
  expect_table_error("label,text\n0,\"\n\"\n", TableKind::csv, "f:2: found no text in column \"text\"");
}

TEST(Labelled, errors_name_file_and_line) {
  expect_table_error("", TableKind::tsv, "f: found no rows");
  expect_table_error("\n\r\n", TableKind::csv, "f: found no rows");
  expect_table_error("\n", TableKind::jsonl, "f: found no rows");
  expect_table_error("label\ttext\n", TableKind::tsv, "f: found a header and no rows");
  expect_table_error("0\ta b\n1\n", TableKind::tsv, "f:2: found 1 columns, expected 2 as in line 1");
  expect_table_error("0\ta b\n\n1\tc d\te\n", TableKind::tsv, "f:3: found 3 columns, expected 2 as in line 1");
  expect_table_error("0\ta b\n1\t \n", TableKind::tsv, "f:2: found no text in column 2, expected one in every row");
  expect_table_error("text\tlabel\na b\t0\nc d\t\n", TableKind::tsv, "f:3: found no label in column \"label\"");
  expect_table_error("premise\thypothesis\tlabel\na b\t\t0\n", TableKind::tsv, "f:2: found no second text in column \"hypothesis\"");
  expect_table_error("one column\n", TableKind::tsv, "f:1: found 1 column, expected at least a text and a label; .tsv has tabs");
  expect_table_error("x\ta b\tc d\te f\n", TableKind::tsv, "f: found 3 columns of sentences, expected one, or two for pairs");
  std::string test_part = "index\tsentence\n";
  for (int i = 0; i < 12; ++i) test_part += std::to_string(i) + "\ta film\n";
  expect_table_error(test_part, TableKind::tsv, "f: found no column of labels: column 1 has 12 different values in 12 rows");
  expect_table_error("{\"text\": \"a\", \"label\": 0}\n{\"text\": \"a\"\n", TableKind::jsonl, "f:2");
  expect_table_error("{\"text\": \"a\", \"label\": 0}\n[1]\n", TableKind::jsonl, "f:2: found array, expected an object");
  expect_table_error("{\"text\": \"a\", \"label\": 0}\n{\"text\": \"a\"}\n", TableKind::jsonl, "f:2: found no label in column \"label\"");
  expect_table_error("{\"text\": [\"a\"], \"label\": 0}\n", TableKind::jsonl, "f:1: found no text in column \"text\"");
  expect_refused([] { read_labelled("texts.xml"); }, "texts.xml: found the ending \".xml\", expected .tsv, .csv or .jsonl");
  expect_refused([] { read_labelled("none.tsv"); }, "none.tsv: there is no such file");
}

TEST(Labelled, the_extension_determines_the_kind) {
  const Folder folder;
  put(folder / "a.tsv", "0\ta b\n");
  put(folder / "a.csv.gz", packed("0,a b\n"));
  put(folder / "a.jsonl.gz", packed("{\"label\": 0, \"text\": \"a b\"}\n"));
  for (const char* name : {"a.tsv", "a.csv.gz", "a.jsonl.gz"})
    EXPECT_EQ(shown(read_labelled((folder / name).string())), Lines{"0|a b"}) << name;
  EXPECT_EQ(read_labelled("opinions").size(), 8000u);
  EXPECT_EQ(read_labelled("entailment/test").size(), 1000u);
}

TEST(ParallelText, pairs_the_lines_of_two_files) {
  const Folder folder;
  put(folder / "a.en", "one\n\ntwo \r\nthree\n");
  put(folder / "a.de.gz", packed("eins\nnull\nzwei\n \n"));
  const auto pairs = read_parallel(folder / "a.en", folder / "a.de.gz");
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[1].source + "|" + pairs[1].target, "two|zwei");
  put(folder / "b.de", "eins\n");
  expect_refused([&] { read_parallel(folder / "a.en", folder / "b.de"); }, "a.en has 4 lines, ");
  expect_refused([&] { read_parallel(folder / "a.en", folder / "b.de"); }, "b.de has 1, expected the same number");
  put(folder / "empty", "\n");
  expect_refused([&] { read_parallel(folder / "empty", folder / "b.de"); }, "empty: found no line with text in both files among 1");
}

TEST(TextDocuments, are_separated_by_blank_lines) {
  const Folder folder;
  put(folder / "all.txt", "\nOne is\nhere. Two!\n \n\nAnother.\r\n");
  const std::vector<Lines> expected = {{"One is here.", "Two!"}, {"Another."}};
  EXPECT_EQ(read_documents(folder / "all.txt"), expected);
  put(folder / "b.txt.gz", packed("The last. Of all."));
  put(folder / "notes.md", "Not this.");
  EXPECT_EQ(read_documents(folder.path()), (std::vector<Lines>{{"One is here.", "Two!"}, {"Another."}, {"The last.", "Of all."}}));
  put(folder / "c.txt", "\n \n");
  expect_refused([&] { read_documents(folder.path()); }, "c.txt: found no text");
  const Folder empty;
  expect_refused([&] { read_documents(empty.path()); }, "found no .txt or .txt.gz in this folder");
  expect_refused([&] { read_documents(empty / "none"); }, "none: there is no such file");
}

TEST(TextDocuments, are_split_into_sentences) {
  const std::vector<Lines> cases = {
      {},
      {"No end"},
      {"One.", "Two!", "Three?", "Four"},
      {"Mr. Smith met Dr. J. F. Kennedy Jr. at St. Paul's.", "He left."},
      {"It costs 3.5 dollars, e.g. Monday.", "Not 4."},
      {"The U.S. Army is in the U.S.", "The end."},
      {"We met at 5 p.m. Eastern time.", "It was late at 6 p.m.", "We left."},
      {"See No. 5 and p. 7.", "No.", "Yes."},
      {"\"Stop!\" he said.", "\"Why?\"", "(She knew.)", "So it went."},
      {"Wait... what?", "Well...", "Then go."},
      {"1. Resolved, that it is so.", "2. Resolved, that it is not."},
      {"IV. The Navy is ready.", "So do I.", "In 1990.", "The end."},
      {"It was \xE2\x80\x9Cover.\xE2\x80\x9D", "\xE2\x80\x9CNo,\xE2\x80\x9D she said."},
      {"Er kam z.B. Montag.", "\xC3\x84pfel auch."},
      {"Il est l\xC3\xA0.", "\xC3\x89mile aussi.", "\xC2\xAB Oui.", "\xC2\xBB non"},
      {"And so on. . . .", "Next."},
  };
  for (const Lines& expected : cases) {
    std::string text;
    for (const std::string& sentence : expected) text += (text.empty() ? "" : "\n ") + sentence;
    EXPECT_EQ(sentences_of(text), expected) << text;
  }
  EXPECT_EQ(sentences_of("\xE4\xBD\xA0\xE5\xA5\xBD\xE3\x80\x82\xE5\x86\x8D\xE8\xA7\x81\xE3\x80\x82"),
            (Lines{"\xE4\xBD\xA0\xE5\xA5\xBD\xE3\x80\x82", "\xE5\x86\x8D\xE8\xA7\x81\xE3\x80\x82"}));
}

std::string look(const std::string& where, bool json) {
  testing::internal::CaptureStdout();
  cli::look_at_text(where, {.lines = 2, .json = json});
  return testing::internal::GetCapturedStdout();
}

TEST(LookAtText, summarizes_every_kind_of_data) {
  const Folder folder;
  put(folder / "a.tsv", "0\ta b\n1\tc d e\n1\tf g\n1\th\n");
  const std::string table = look((folder / "a.tsv").string(), false);
  for (const char* part :
       {"a.tsv: 4 labelled texts, 2 labels\ncolumns of ", ": text_column=2, label_column=1\ntexts:  1 to 3 words, median 2, 8 in all\n",
        "0             1   25.00%  #############\n", "1             3   75.00%  ########################################\n",
        "\n0      a b\n1      f g\n"})
    EXPECT_NE(table.find(part), std::string::npos) << table;
  const Json labelled = parse_json("look", look((folder / "a.tsv").string(), true));
  EXPECT_EQ(labelled["labels"], (Json{{"0", 1}, {"1", 3}}));
  put(folder / "b.en", "one two\nthree\n");
  put(folder / "b.de", "eins zwei\ndrei\n");
  const std::string files = (folder / "b.en").string() + "," + (folder / "b.de").string();
  EXPECT_NE(look(files, false).find(": 2 pairs\nsource: 1 to 2 words"), std::string::npos);
  EXPECT_EQ(parse_json("look", look(files, true))["samples"][1]["target"], "drei");
  put(folder / "c.txt", "One. Two.\n\nThree.\n");
  EXPECT_NE(look((folder / "c.txt").string(), false).find(": 2 documents, 3 sentences\nsentences: 1 to 1 words"), std::string::npos);
  EXPECT_EQ(parse_json("look", look(folder.path().string(), true))["sentences"], 3);
  EXPECT_EQ(parse_json("look", look("entailment/test", true))["pair_words"]["most"], 5);
  EXPECT_EQ(parse_json("look", look("numbers", true))["pairs"], 10'000);
  expect_refused([] { cli::look_at_text("nothing", {}); }, "nothing: there is no such file");
}

}  // namespace
}  // namespace heed::test
