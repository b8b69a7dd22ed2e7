// heed tokenize and heed vocabulary from the command line.
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

class TokenizeProgram : public testing::Test {
 protected:
  TokenizeProgram() { put(folder / "tokenizer.json", bert_json().dump()); }

  static std::string heed(const std::string& arguments, const std::string& input = "") { return output_of_heed(arguments, input); }
  std::string model() const { return folder.path().string(); }
  const Folder folder;
};

TEST_F(TokenizeProgram, shows_byte_level_tokens_as_text) {
  Json vocabulary = Json::object();
  int id = 0;
  for (const char* token : {"S", "t", "r", "a", "e", "\u00c3", "\u0141", "\u00c3\u0141", "\u0120", "\u010a"}) vocabulary[token] = id++;
  const Json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const Json merges = {"\u00c3 \u0141"};
  put(folder / "tokenizer.json",
      with_model({{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}, {{"pre_tokenizer", level}, {"decoder", level}}).dump());
  EXPECT_EQ(heed("tokenize " + model() + " 'Stra\u00dfe a\n'"),
            "       0  S\n       1  t\n       2  r\n       3  a\n       7  \u00df\n       4  e\n       8  \u00b7\n       3  a\n       9  "
            "\u23ce\n");
  EXPECT_EQ(Json::parse(heed("tokenize " + model() + " --json '\u00df'"))["tokens"], (Json{"\u00c3\u0141"}));  // as stored in the file
}

TEST_F(TokenizeProgram, encodes_and_decodes) {
  EXPECT_EQ(heed("tokenize " + model() + " 'Hello, a!'"),
            "       2  [CLS]\n      14  hello\n      12  ,\n      15  a\n      13  !\n       3  [SEP]\n");
  EXPECT_EQ(heed("tokenize " + model() + " --ids hello 'a a'"), "2 14 3\n2 15 15 3\n");
  EXPECT_EQ(heed("tokenize " + model() + " --ids --no-special --offsets 'hello a'"), "14 15\n0-5 6-7\n");
  EXPECT_EQ(heed("tokenize " + model() + " --ids --pair a hello"), "2 14 3 15 3\n");
  EXPECT_EQ(heed("tokenize " + model() + " --ids --max-length 3 'hello a'"), "2 14 3\n");
  EXPECT_EQ(heed("tokenize " + model() + " --ids '[MASK]' '[a, a]' ''"), "2 4 3\n2 1 15 12 15 1 3\n2 3\n");
  EXPECT_EQ(heed("tokenize " + model() + " --ids -- --a"), "2 1 1 15 3\n");
  EXPECT_EQ(heed("tokenize " + model() + " --decode 2 14 12 15 3"), "hello, a\n");
  EXPECT_EQ(heed("tokenize " + model() + " --decode --keep-special '[2, 14]'"), "[CLS] hello\n");
}

TEST_F(TokenizeProgram, reads_lines) {
  EXPECT_EQ(heed("tokenize " + model() + " --lines", "hello\n\na"), "2 14 3\n2 3\n2 15 3\n");
  EXPECT_EQ(heed("tokenize " + model() + " --lines", ""), "");
  EXPECT_EQ(heed("tokenize " + model() + " --lines --decode", "14 13\n15\n"), "hello!\na\n");
  const Json counted = Json::parse(heed("tokenize " + model() + " --count --json", "hello\na a\n"));
  EXPECT_EQ(counted["lines"], 2);
  EXPECT_EQ(counted["tokens"], 7);
}

TEST_F(TokenizeProgram, prints_json) {
  const Json json = Json::parse(heed("tokenize " + model() + " --json hello"));
  EXPECT_EQ(json["ids"], (Json{2, 14, 3}));
  EXPECT_EQ(json["tokens"], (Json{"[CLS]", "hello", "[SEP]"}));
  EXPECT_EQ(json["offsets"], Json::parse("[[0,0],[0,5],[0,0]]"));
  EXPECT_EQ(Json::parse(heed("tokenize " + model() + " --lines --json", "\xFF\n"))["ids"], (Json{2, 3}));
}

TEST_F(TokenizeProgram, refuses_invalid_usage) {
  EXPECT_EQ(heed("tokenize " + model()), "2: heed: tokenize: found 0 texts, expected at least one, or --lines to read standard input\n");
  EXPECT_EQ(heed("tokenize " + model() + " --lines a"),
            "2: heed: tokenize: found 1 texts, expected none: --lines and --count read standard input\n");
  EXPECT_EQ(heed("tokenize " + model() + " --decode x"),
            "2: heed: tokenize: found \"x \", expected token ids separated by spaces or commas\n");
  EXPECT_EQ(heed("tokenize /nowhere a").substr(0, 20), "3: heed: /nowhere: f");
  EXPECT_EQ(heed("tokenize " + model() + " --decode 999").substr(0, 39), "2: heed: tokenize: found the id 999, wh");
}

TEST_F(TokenizeProgram, trains_a_vocabulary) {
  put(folder / "text.txt", "low lower lowest\nlow lower\n");
  const std::string out = (folder / "trained").string(), train = "vocabulary train " + (folder / "text.txt").string() + " --out " + out;
  const Json json = Json::parse(heed(train + " --size 20 --json"));
  EXPECT_EQ(json["tokens"], 20);
  EXPECT_EQ(json["words"], 3);
  EXPECT_NE(heed(train + " --kind bpe --size 260").find("260 tokens (bpe) from"), std::string::npos);
  EXPECT_EQ(heed("tokenize " + out + " --decode $('" HEED_PROGRAM "' tokenize " + out + " --ids 'low lowest')"), "low lowest\n");
  EXPECT_EQ(heed("vocabulary train --out x"),
            "2: heed: vocabulary train: files is required; heed help vocabulary train explains the arguments\n");
  EXPECT_EQ(heed(train + " --kind letters"), "2: heed: --kind: found letters, expected one of bpe, characters, wordpiece, words\n");
}

}  // namespace
}  // namespace heed::test
