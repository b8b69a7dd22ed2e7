// Tables of texts: unusual files, detected or given columns, translation pairs, rows without labels.
#include "heed/data/text_rows.h"
#include "tests/data/idx_files.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

using Lines = std::vector<std::string>;

std::string described(const ChosenColumns& columns) { return columns_text("f", columns); }

// A labelled CSV as "label|text" per row, after its columns.
Lines labelled(const std::string& text, const TextColumns& columns = {}, TableKind kind = TableKind::csv) {
  ChosenColumns chosen;
  Lines out;
  for (const LabelledText& row : parse_labelled("f", text, kind, columns, &chosen))
    out.push_back(row.label + "|" + row.text + (row.pair ? "|" + *row.pair : ""));
  out.insert(out.begin(), described(chosen));
  return out;
}

Lines translated(const std::string& text, TableKind kind, const TextColumns& columns = {}, const LanguageCodes& languages = {}) {
  ChosenColumns chosen;
  Lines out;
  for (const Translation& pair : parse_translations("f", text, kind, columns, languages, &chosen))
    out.push_back(pair.source + "|" + pair.target);
  out.insert(out.begin(), described(chosen));
  return out;
}

TEST(TextTables, reviews_with_unusual_columns_are_read) {
  const std::string by_name = "columns of f: text_column=Review Text, label_column=Stars";
  EXPECT_EQ(labelled("\"ID\",\"Review Text\",\"Date\",\"Stars\"\n1,\"two\nlines, \"\"here\"\"\",2020-01-02,5\n2,dull,2020-01-03,1\n"),
            (Lines{by_name, "5|two\nlines, \"here\"", "1|dull"}));
  EXPECT_EQ(labelled("Stars;Review Text;Useful\n5;good, all in all;7\n1;dull;0\n"), (Lines{by_name, "5|good, all in all", "1|dull"}));
  EXPECT_EQ(labelled("STARS\tREVIEW-TEXT\n5\ta good one\n1\tdull\n"),  // tabs in a .csv
            (Lines{"columns of f: text_column=REVIEW-TEXT, label_column=STARS", "5|a good one", "1|dull"}));
  EXPECT_EQ(labelled("0,a dull film\n1,a fine film\n"),
            (Lines{"columns of f: text_column=2, label_column=1", "0|a dull film", "1|a fine film"}));
  // Text above numbers is a header, for any names.
  EXPECT_EQ(labelled("blurb,grade\na dull film,1\na fine film,5\nanother film,5\n"),
            (Lines{"columns of f: text_column=blurb, label_column=grade", "1|a dull film", "5|a fine film", "5|another film"}));
  // Two columns of labels, neither with a known name.
  std::string table = "id;shop;review;grade\n";
  for (int i = 0; i < 40; ++i)
    table += std::to_string(i) + (i % 3 ? ";web;" : ";app;") + "a film " + std::to_string(i) + (i % 2 ? ";good\n" : ";bad\n");
  expect_refused([&] { labelled(table); },
                 "f: found 2 columns that may be the labels: \"shop\" (2 values), \"grade\" (2 values); choose one with label_column=NAME");
  expect_refused([&] { labelled(table.substr(table.find('\n') + 1)); },
                 "f: found 2 columns that may be the labels: 2 (2 values), 4 (2 values)");
  EXPECT_EQ(labelled(table, {.label = "grade"}).front(), "columns of f: text_column=review, label_column=grade");
  expect_refused([] { labelled("text,label\na b,0\nc d,\n"); },
                 "f:3: found no label in column \"label\", expected one in every row; fill it in or delete the row");
  expect_refused([] { labelled("text,label,stars\na b,0,1\nc d,,2\n"); },
                 "fill it in or delete the row, or choose another column with label_column=NAME");
  expect_refused([] { labelled("text,label,stars\n,0,1\nc d,1,2\n"); }, ", or choose another column with text_column=NAME");
  expect_refused([] { labelled("text,label\na," + std::string(1001, 'x') + "\n"); }, "f:2: found a label of 1001 bytes");
}

TEST(TextTables, encodings_are_named) {
  const Folder folder;
  const std::string text = "text,label\na b,0\n";
  std::string little = "\xFF\xFE", big = "\xFE\xFF", bare;
  for (const char letter : text) {
    little += {letter, '\0'};
    big += {'\0', letter};
    bare += {letter, '\0'};
  }
  for (const auto& [bytes, kind] : {std::pair(little, "UTF-16 text (little-endian)"), std::pair(big, "UTF-16 text (big-endian)"),
                                    std::pair(bare, "UTF-16 text (little-endian)"), std::pair(packed(little), "UTF-16 text")}) {
    put(folder / "a.csv", bytes);
    expect_refused([&] { read_labelled((folder / "a.csv").string()); }, "a.csv: found " + std::string(kind));
    expect_refused([&] { read_labelled((folder / "a.csv").string()); }, "expected UTF-8 text; convert it first: iconv -f UTF-16");
  }
  put(folder / "a.csv", "PK\x03\x04 and more");
  expect_refused([&] { read_labelled((folder / "a.csv").string()); }, "found a zip archive or an Office document, expected UTF-8 text");
}

TEST(TextTables, an_unterminated_field_is_refused_with_its_line) {
  const std::string much(5 << 20, 'x');
  const auto refused = [&](const std::string& text, TableKind kind, const std::string& message) {
    expect_refused([&] { parse_labelled("f", text, kind); }, message);
  };
  refused("text,label\na,0\n" + much + ",1\n", TableKind::csv, "f:3: found a field of more than 4194304 bytes");
  refused("text,label\na,0\n\"" + much + "\n", TableKind::csv,
          "f:3: found a field of more than 4194304 bytes, expected at most that many; is its closing quote missing?");
  refused("text\tlabel\na\t0\n" + much + "\t1\n", TableKind::tsv, "f:3: found a field of more than 4194304 bytes");
  refused("{\"text\": \"a\", \"label\": 0}\n{\"text\": \"" + much + "\", \"label\": 0}\n", TableKind::jsonl, "f:2");
}

TEST(TextTables, pairs_in_two_languages_are_found_by_name) {
  const Lines pairs = {"one|eins", "two words|zwei W\xC3\xB6rter"};
  const auto expect = [&](const Lines& found, const std::string& source, const std::string& target) {
    Lines expected = pairs;
    expected.insert(expected.begin(), "columns of f: source_column=" + source + ", target_column=" + target);
    EXPECT_EQ(found, expected);
  };
  const std::string rows = "one\teins\ntwo words\tzwei W\xC3\xB6rter\n";
  expect(translated("source\ttarget\n" + rows, TableKind::tsv), "source", "target");
  expect(translated("SRC\tTGT\n" + rows, TableKind::tsv), "SRC", "TGT");
  expect(translated("en\tde\n" + rows, TableKind::tsv), "en", "de");
  expect(translated("English\tGerman\n" + rows, TableKind::tsv), "English", "German");
  expect(translated(rows, TableKind::tsv), "1", "2");
  expect(translated("id,de,en,note\n1,eins,one,x\n2,zwei W\xC3\xB6rter,two words,y\n3,,three,\n", TableKind::csv, {}, {"en", "de"}), "en",
         "de");
  expect(translated("id,de,en,note\n1,eins,one,x\n2,zwei W\xC3\xB6rter,two words,y\n", TableKind::csv, {.source = "en"}), "en", "de");
  expect(translated("a;b;c\nx;eins;one\ny;zwei W\xC3\xB6rter;two words\n", TableKind::csv, {.source = "c", .target = "b"}), "c", "b");
  expect(translated("x\teins\tone\ny\tzwei W\xC3\xB6rter\ttwo words\n", TableKind::tsv, {.source = "3", .target = "2"}), "3", "2");
  expect(translated("{\"id\": 1, \"translation\": {\"en\": \"one\", \"de\": \"eins\"}}\n"
                    "{\"id\": 2, \"translation\": {\"en\": \"two words\", \"de\": \"zwei W\xC3\xB6rter\"}}\n",
                    TableKind::jsonl, {}, {"en", "de"}),
         "translation.en", "translation.de");
  expect_error<UsageError>([] { translated("a,b,c\nx,y,z\n", TableKind::csv); }, "f: found 3 columns");
  expect_error<UsageError>([] { translated("en,de\nx,y\n", TableKind::csv, {.source = "fr"}); },
                           "f: found no column \"fr\" (source_column)");
  expect_refused([] { translated("only\n", TableKind::tsv); }, "f:1: found 1 column, expected at least a source and a target");
  expect_refused([] { translated("en\tde\none\t\n", TableKind::tsv); }, "f: found no row with text in both columns among 1");
}

TEST(TextTables, labelled_and_translated_tables_are_distinguished) {
  const auto is_translated = [](const std::string& text, const TextColumns& columns = {}) {
    return looks_translated(parse_table("f", text, TableKind::tsv), columns, {});
  };
  EXPECT_TRUE(is_translated("source\ttarget\na b\tc d\n"));
  EXPECT_TRUE(is_translated("en\tde\na\tb\n"));
  EXPECT_TRUE(is_translated("one word\tein Wort\ntwo words\tzwei Worte\nthree words\tdrei Worte\n"));
  EXPECT_TRUE(is_translated("a\tb\tc\n", {.source = "1", .target = "2"}));
  EXPECT_FALSE(is_translated("text\tlabel\na b\tc\n"));
  EXPECT_FALSE(is_translated("text\ttarget\na b\tc\n"));
  EXPECT_FALSE(is_translated("a film\tgood\nanother film\tgood\na third film\tbad\n"));
  EXPECT_FALSE(is_translated("id\tsentence1\tsentence2\tlabel\n1\ta b\tc d\tyes\n"));
}

TEST(TextTables, rows_without_labels_keep_their_columns) {
  const auto rows = [](const std::string& text, const TextColumns& columns = {}, PairMode pairs = PairMode::no) {
    return parse_text_rows("f", text, TableKind::csv, columns, pairs);
  };
  const TextRows found = rows("id,Review,stars\n7,a fine film,5\n8,,1\n");
  EXPECT_EQ(described(found.chosen), "columns of f: text_column=Review");
  EXPECT_EQ(found.table.rows[0].cells, (Lines{"7", "a fine film", "5"}));
  EXPECT_EQ(found.names(), (Lines{"id", "Review", "stars"}));
  EXPECT_EQ(described(rows("a fine film\na dull one\n").chosen), "columns of f: text_column=1");
  EXPECT_EQ(described(rows("7,a fine film\n8,a dull one\n").chosen), "columns of f: text_column=2");
  EXPECT_EQ(rows("7,a fine film\n").names(), (Lines{"column_1", "column_2"}));
  EXPECT_EQ(described(rows("premise,hypothesis\na b,c d\n", {}, PairMode::if_named).chosen),
            "columns of f: text_column=premise, pair_column=hypothesis");
  EXPECT_EQ(described(rows("premise,hypothesis\na b,c d\n").chosen), "columns of f: text_column=premise");
  EXPECT_EQ(described(rows("a b,c d\n", {}, PairMode::yes).chosen), "columns of f: text_column=1, pair_column=2");
  const std::string questions = "question,answer,context\nWho?,Anna,It was Anna\n";  // a table to train on
  EXPECT_EQ(described(rows(questions, {}, PairMode::context).chosen), "columns of f: text_column=question, pair_column=context");
  EXPECT_EQ(described(rows(questions, {}, PairMode::yes).chosen), "columns of f: text_column=question, pair_column=answer");
  expect_error<UsageError>([&] { rows("question,answer,page\nWho?,Anna,It was Anna\n", {}, PairMode::context); },
                           "f: found no column for the second text");
  EXPECT_EQ(described(rows("x,y\na b,c d\n", {.text = "y", .pair = "x"}).chosen), "columns of f: text_column=y, pair_column=x");
  expect_error<UsageError>([&] { rows("a b,c d,e f\n"); },
                           "f: found 3 columns of sentences among 3; expected one: choose it with text_column=NAME");
  expect_error<UsageError>([&] { rows("text,label\na,b\n", {.text = "txt"}); }, "did you mean 'text'?");
  const TextRows json = parse_text_rows("f", "{\"text\": \"a\", \"n\": 1.5}\n", TableKind::jsonl, {}, PairMode::no);
  EXPECT_EQ(json.table.rows[0].json, "{\"text\": \"a\", \"n\": 1.5}");
}

TEST(TextTables, parts_are_found_next_to_each_other) {
  const Folder folder;
  for (const char* name : {"train.tsv.gz", "valid.tsv.gz", "test.tsv.gz"}) put(folder / name, packed("a b\tc d\n"));
  const std::string train = train_table_of(folder.path().string());
  EXPECT_EQ(train, (folder / "train.tsv.gz").string());
  EXPECT_EQ(sibling_table(train, kValidationNames), (folder / "valid.tsv.gz").string());
  EXPECT_EQ(sibling_table(train, {"none"}), "");
  put(folder / "dev.tsv", "a b\tc d\n");  // not compressed as the training data are
  EXPECT_EQ(sibling_table(train, {"dev"}), (folder / "dev.tsv").string());
  EXPECT_EQ(sibling_table(folder / "train.tsv", {"test"}), (folder / "test.tsv.gz").string());
  EXPECT_TRUE(is_table_file("A.CSV") && is_table_file("b.jsonl.gz") && !is_table_file("c.txt") && !is_table_file("tsv"));
}

}  // namespace
}  // namespace heed::test
