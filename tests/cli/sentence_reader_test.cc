// Sentences from arguments and files, and their batches.
#include "heed/cli/sentence_reader.h"

#include <gtest/gtest.h>

#include "heed/cli/display_text.h"
#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

using cli::SentenceReader;

// All sentences of a source, pairs with "|" between them.
std::vector<std::string> all_of(const cli::SentenceOptions& options) {
  std::vector<std::string> out;
  SentenceReader reader(options, "test");
  for (std::vector<Sentence> some = reader.next(); !some.empty(); some = reader.next())
    for (const Sentence& each : some) out.push_back(each.pair ? each.text + "|" + *each.pair : each.text);
  return out;
}

TEST(Sentences, come_from_arguments_and_files_in_order) {
  using Lines = std::vector<std::string>;
  const Folder folder;
  const std::string file = folder / "lines";
  EXPECT_EQ(all_of({.texts = {"a", "", "b\n"}}), (Lines{"a", "", "b\n"}));
  EXPECT_EQ(all_of({.texts = {"a\tb"}, .pairs = true}), Lines{"a|b"});
  put(file, "\xEF\xBB\xBFone\r\n\n  two\nthree");
  EXPECT_EQ(all_of({.file = file}), (Lines{"one", "", "  two", "three"}));
  put(file, "\n");
  EXPECT_EQ(all_of({.file = file}), Lines{""});
  Lines many;
  std::string text;
  for (int i = 0; i < 10'000; ++i) {
    many.push_back(std::to_string(i) + std::string(static_cast<size_t>(i % 97), 'x'));
    text += many.back() + "\n";
  }
  put(file, text);
  EXPECT_EQ(all_of({.file = file}), many);
  const size_t ten_megabytes = 10'000'000;
  put(file, std::string(ten_megabytes, 'x') + "\nshort\n");
  const Lines long_first = all_of({.file = file});
  ASSERT_EQ(long_first.size(), 2u);
  EXPECT_EQ(long_first[0].size(), ten_megabytes);
  EXPECT_EQ(long_first[1], "short");
}

TEST(Sentences, errors_name_files_and_lines) {
  const Folder folder;
  const std::string file = folder / "lines";
  const auto refused = [&](const std::string& text, const std::string& message, bool pairs = false) {
    put(file, text);
    expect_refused([&] { all_of({.file = file, .pairs = pairs}); }, message);
  };
  refused("", file + ": is empty, expected one sentence per line");
  refused("fine\nb\xFFtter\n", file + ": line 2: found \"\\xfftte\" at byte 1, expected UTF-8");
  refused("cut \xC3", file + ": line 1: found \"\\xc3\" at byte 4, expected UTF-8");
  refused("a\tb\nc\n", file + ": line 2: found 0 tabs, expected one, between two sentences", true);
  expect_refused([&] { all_of({.file = folder / "none"}); }, "none: there is no such file");
  expect_refused([&] { all_of({.file = folder.path()}); }, ": is a folder, expected a file with one sentence per line");
  expect_refused([&] { all_of({.texts = {"a", "\xFF"}}); }, "argument 2: found \"\\xff\" at byte 0, expected UTF-8");
  EXPECT_THROW(all_of({.texts = {"a"}, .file = file}), UsageError);
}

TEST(Sentences, of_similar_length_are_batched_together) {
  const Tokenizer tokenizer = tokenizer_of(bert_json());
  const std::vector<Sentence> sentences = {{"a"}, {"a a a a a"}, {"a", "hello"}, {""}, {"a a a"}};
  const EncodedSentences encoded = encode_sentences(tokenizer, sentences, {.max_length = 6});
  EXPECT_EQ(encoded.cut, 1);
  std::vector<int64_t> lengths;
  for (const Encoding& each : encoded.encodings) lengths.push_back(each.size());
  EXPECT_EQ(lengths, (std::vector<int64_t>{3, 6, 5, 2, 5}));
  EXPECT_EQ(encoded.encodings[2].ids, (Ids{2, 15, 3, 14, 3}));
  using Batches = std::vector<std::vector<size_t>>;
  EXPECT_EQ(batches_by_length(encoded.encodings, 12), (Batches{{1, 2}, {4, 0}, {3}}));
  EXPECT_EQ(batches_by_length(encoded.encodings, 1), (Batches{{1}, {2}, {4}, {0}, {3}}));
  EXPECT_EQ(batches_by_length(encoded.encodings), (Batches{{1, 2, 4, 0, 3}}));
  EXPECT_TRUE(batches_by_length({}).empty());
}

TEST(Sentences, are_shortened_and_stripped_of_control_characters) {
  EXPECT_EQ(cli::display_text("a\tb\x1b[31mc"), "a b [31mc");
  EXPECT_EQ(cli::display_text("\u00e4\u00f6\u00fc", 2), "\u00e4\u00f6...");
  EXPECT_EQ(cli::display_text("\u00e4\u00f6", 2), "\u00e4\u00f6");
  EXPECT_EQ(cli::display_text("b\xe9"), "b\\xe9");  // invalid UTF-8: a character without its further bytes
}

}  // namespace
}  // namespace heed::test
