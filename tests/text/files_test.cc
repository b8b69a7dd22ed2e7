// Tokenizers from model folders, and errors in tokenizer.json.
#include <gtest/gtest.h>

#include "heed/text/tokenizer.h"
#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

std::string lines_of(const std::vector<std::string>& tokens) {
  std::string out;
  for (const std::string& token : tokens) out += token + "\n";
  return out;
}

TEST(TokenizerFiles, vocab_txt) {
  const Folder folder;
  put(folder / "vocab.txt", lines_of(kBertTokens));
  const Tokenizer same = tokenizer_of(bert_json()), plain = Tokenizer::open(folder.path());
  for (const char* text : {"Hello, UNAFFABLE \u4f60\u597d!", "[MASK] a", ""}) EXPECT_EQ(plain.encode(text).ids, same.encode(text).ids);
  EXPECT_EQ(plain.padding_id(), 0);
  put(folder / "tokenizer_config.json", R"({"do_lower_case": false, "tokenize_chinese_chars": false, "mask_token": {"content": "hello"}})");
  const Tokenizer cased = Tokenizer::open(folder.path());
  EXPECT_EQ(cased.encode("A a \u4f60\u597d", {false}).ids, (Ids{1, 15, 1}));
  EXPECT_TRUE(cased.is_special(14));
  EXPECT_EQ(cased.encode("\u00e9", {false}).ids, (Ids{18}));  // strip_accents defaults to do_lower_case
  put(folder / "vocab.txt", "[UNK]\n[CLS]\n");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "vocab.txt: found no \"[SEP]\"");
  put(folder / "vocab.txt", "");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "vocab.txt: found no tokens");
  put(folder / "vocab.txt", "a\n\xFF\n");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "vocab.txt: line 2: found bytes that are not UTF-8");
}

TEST(TokenizerFiles, vocab_json_and_merges) {
  const Folder folder;
  const std::vector<std::string> tokens = {"<|endoftext|>", "h",    "i",     "hi",    "\u0120", "\u0120hi",
                                           "<s>",           "</s>", "<pad>", "<unk>", "<mask>"};
  for (const auto& [vocabulary, merges] : {std::pair("vocab.json", "merges.txt"), std::pair("encoder.json", "vocab.bpe")}) {
    put(folder / vocabulary, numbered(tokens).dump());
    put(folder / merges, "#version: 0.2\nh i\n\u0120 hi\n");
    EXPECT_EQ(Tokenizer::open(folder.path()).encode("hi hi<|endoftext|>").ids, (Ids{3, 5, 0}));
  }
  put(folder / "tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer", "add_prefix_space": true})");
  const Tokenizer roberta = Tokenizer::open(folder.path());
  EXPECT_EQ(roberta.encode("hi").ids, (Ids{6, 5, 7}));
  EXPECT_EQ(roberta.padding_id(), 8);
  EXPECT_EQ(roberta.encode("hi <mask> hi").ids, (Ids{6, 5, 10, 5, 7}));  // the mask takes the space before it
  std::filesystem::remove(folder / "tokenizer_config.json");
  put(folder / "config.json", R"({"model_type": "roberta"})");
  EXPECT_EQ(Tokenizer::open(folder.path()).encode("hi").ids, (Ids{6, 3, 7}));
  put(folder / "config.json", R"({"model_type": "qwen2"})");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "found the tokenizer_class \"Qwen2Tokenizer\"");
  put(folder / "tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "found the tokenizer_class \"CLIPTokenizer\"");
}

TEST(TokenizerFiles, tokens_added_to_a_vocabulary) {
  const Folder folder;
  put(folder / "vocab.txt", lines_of(kBertTokens));
  const auto next = static_cast<int32_t>(kBertTokens.size());
  const std::string ids = R"({"<new>": )" + std::to_string(next) + R"(, "<pad>": )" + std::to_string(next + 1) + R"(, "[MASK]": 4})";
  put(folder / "added_tokens.json", ids);
  put(folder / "tokenizer_config.json", R"({"pad_token": "<pad>"})");
  const Tokenizer older = Tokenizer::open(folder.path());
  EXPECT_EQ(older.encode("hello<new>", {false}).ids, (Ids{14, next}));
  EXPECT_EQ(older.encode("HELLO<NEW>[MASK]", {false}).ids, (Ids{14, next, 4}));  // not special: matched in normalized text
  EXPECT_EQ(older.padding_id(), next + 1);
  EXPECT_TRUE(older.is_special(next + 1) && older.is_special(4));
  EXPECT_FALSE(older.is_special(next));
  EXPECT_EQ(older.id_limit(), next + 2);
  put(folder / "special_tokens_map.json", R"({"additional_special_tokens": ["<new>"]})");
  EXPECT_TRUE(Tokenizer::open(folder.path()).is_special(next));
  // added_tokens_decoder comes first, and has flags.
  put(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {")" + std::to_string(next) +
                                            R"(": {"content": "<other>", "special": true, "lstrip": true}, "4": {"content": "[MASK]"}}})");
  const Tokenizer newer = Tokenizer::open(folder.path());
  EXPECT_EQ(newer.encode("hello <other>", {false}).ids, (Ids{14, next}));
  EXPECT_EQ(newer.encode("hello <other>", {false}).offsets[1].begin, 5u);
  EXPECT_TRUE(newer.is_special(next));
  EXPECT_FALSE(newer.is_special(4) || newer.has(next + 1));
  put(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {"four": {"content": "<x>"}}})");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "added_tokens_decoder: [0]: found the id -1, expected one from 0 to");
  put(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {"5": {"content": "[MASK]"}}})");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "found the id 5 for \"[MASK]\", expected 4 as in the vocabulary");
}

TEST(TokenizerFiles, tokenizer_json_comes_first) {
  const Folder folder;
  put(folder / "vocab.txt", "nonsense");
  put(folder / "tokenizer.json", bert_json().dump());
  EXPECT_EQ(Tokenizer::open(folder.path()).encode("hello").ids, (Ids{2, 14, 3}));
  EXPECT_EQ(Tokenizer::open(folder / "tokenizer.json").encode("hello").ids, (Ids{2, 14, 3}));
  put(folder / "tokenizer_config.json", R"({"pad_token": "[MASK]"})");
  EXPECT_EQ(Tokenizer::open(folder.path()).padding_id(), 4);
}

TEST(TokenizerFiles, a_missing_tokenizer_lists_the_expected_files) {
  const Folder folder;
  expect_refused([&] { Tokenizer::open(folder.path()); },
                 "found no tokenizer, expected tokenizer.json, or vocab.txt, or vocab.json and merges.txt");
  expect_refused([&] { Tokenizer::open(folder / "nothing"); }, "nothing: found nothing there");
}

TEST(TokenizerFiles, stores_truncation_and_padding_of_the_file) {
  Json json = bert_json();
  EXPECT_FALSE(tokenizer_of(json).stored_truncation() || tokenizer_of(json).stored_padding());
  json["truncation"] = {{"max_length", 128}, {"strategy", "OnlyFirst"}, {"direction", "Left"}, {"stride", 0}};
  json["padding"] = {{"strategy", {{"Fixed", 64}}}, {"direction", "Left"}, {"pad_to_multiple_of", 8}, {"pad_id", 4}, {"pad_type_id", 0},
                     {"pad_token", "[MASK]"}};
  const Tokenizer tokenizer = tokenizer_of(json);
  ASSERT_TRUE(tokenizer.stored_truncation() && tokenizer.stored_padding());
  EXPECT_EQ(tokenizer.stored_truncation()->max_length, 128);
  EXPECT_EQ(tokenizer.stored_truncation()->truncation, Truncation::only_first);
  EXPECT_EQ(tokenizer.stored_truncation()->truncation_side, Side::left);
  EXPECT_EQ(tokenizer.stored_padding()->length, 64);
  EXPECT_EQ(tokenizer.padding_id(), 4);
  EXPECT_EQ(tokenizer.encode("hello").ids, (Ids{2, 14, 3}));  // not applied by default
  json["padding"]["strategy"] = "BatchLongest";
  EXPECT_EQ(tokenizer_of(json).stored_padding()->length, 0);
}

TEST(TokenizerFiles, refuses_wrong_json_and_names_the_place) {
  const auto refused = [](const std::function<void(Json&)>& change, const std::string& fragment) {
    Json json = bert_json();
    change(json);
    expect_refused([&] { tokenizer_of(json); }, fragment);
  };
  expect_refused([] { Tokenizer::from_json("", "t"); }, "t: byte 0: found a syntax error, expected JSON");
  expect_refused([] { Tokenizer::from_json("[]", "t"); }, "t: found \"[]\", expected an object with \"model\"");
  expect_refused([] { Tokenizer::from_json("{}", "t"); }, "t: found no \"model\"");
  refused([](Json& json) { json["model"]["type"] = "Magic"; }, "test.json: model: found the model \"Magic\", expected one of WordPiece");
  refused([](Json& json) { json["model"].erase("vocab"); }, "test.json: model: found no \"vocab\"");
  refused([](Json& json) { json["model"]["vocab"] = 7; }, "test.json: model.vocab is \"7\", expected an object");
  refused([](Json& json) { json["model"]["vocab"]["x"] = 3; }, "found the id 3 for");
  refused([](Json& json) { json["model"]["vocab"]["x"] = -3; }, "found the id -3 for \"x\"");
  refused([](Json& json) { json["model"]["vocab"]["x"] = 1.5; }, "expected a whole number");
  refused([](Json& json) { json["model"]["vocab"]["x"] = 99999999; }, "found the id 99999999 for \"x\", expected 0 to 16777215");
  refused([](Json& json) { json["model"]["unk_token"] = "?"; }, "found no \"?\" in the vocabulary");
  refused([](Json& json) { json["model"]["unk_token"] = 1; }, "test.json: model.unk_token is \"1\", expected a string");
  refused([](Json& json) { json["normalizer"]["lowercase"] = 1; }, "test.json: normalizer.lowercase is \"1\", expected true or false");
  refused(
      [](Json& json) {
        json["pre_tokenizer"] = {{"type", "ByteLevel"}};
      },
      "found the model \"WordPiece\" after the pre-tokenizer ByteLevel");
  refused([](Json& json) { json["decoder"]["type"] = "CTC"; }, "test.json: decoder: found the decoder \"CTC\", expected one of");
  refused([](Json& json) { json["post_processor"]["type"] = "Glue"; }, "found the post-processor \"Glue\", expected one of");
  refused([](Json& json) { json["post_processor"]["special_tokens"].erase("[SEP]"); }, "special_tokens: found no \"[SEP]\"");
  refused([](Json& json) { json["post_processor"]["special_tokens"]["[SEP]"]["ids"] = {77}; },
          "found the id 77, expected one that has a token");
  refused([](Json& json) { json["post_processor"]["single"].erase(1); }, "found A 0 times and B 0 times, expected A once and no B");
  refused([](Json& json) { json["added_tokens"][0]["id"] = 9; },
          "added_tokens[0]: found the id 9 for \"[PAD]\", expected 0 as in the vocabulary");
  refused([](Json& json) { json["added_tokens"].push_back(json["added_tokens"][0]); }, "found \"[PAD]\" a second time");
  refused([](Json& json) { json["added_tokens"] = "none"; }, "test.json: added_tokens is \"none\", expected a list");
  refused(
      [](Json& json) {
        json["padding"] = {{"strategy", "BatchLongest"}, {"direction", "Up"}};
      },
      "found the direction \"Up\", expected Left or Right");
  const auto refused_model = [](const Json& model, const std::string& fragment) {
    expect_refused([&] { tokenizer_of(with_model(model)); }, fragment);
  };
  const Json one = {{"a", 0}};
  refused_model({{"type", "BPE"}, {"vocab", one}, {"merges", {"aa"}}}, "merges[0]: found \"aa\", expected two tokens with a space between");
  refused_model({{"type", "BPE"}, {"vocab", one}, {"merges", {{"a"}}}}, "merges[0]: found 1 tokens, expected 2");
  refused_model({{"type", "BPE"}, {"vocab", one}, {"merges", {"a b"}}}, "merge 0: found \"b\", expected a token of the vocabulary");
  refused_model({{"type", "BPE"}, {"dropout", 0.1}, {"vocab", one}, {"merges", Json::array()}}, "model.dropout is \"0.1\", expected none");
  refused_model(Json::parse(R"({"type": "Unigram", "vocab": [["a", "b"]]})"), "vocab[0][1] is \"b\", expected a number");
  refused_model(Json::parse(R"({"type": "Unigram", "vocab": [["a", 0], ["a", 0]]})"), "vocab[1]: found \"a\" a second time");
  refused_model({{"type", "Unigram"}, {"vocab", Json::array()}}, "found 0 scores for 0 tokens");
}

TEST(TokenizerFiles, older_files_do_not_name_their_model) {
  EXPECT_EQ(tokenizer_of(with_model({{"vocab", numbered({"a", "b", "ab"})}, {"merges", {"a b"}}})).encode("abb").ids, (Ids{2, 1}));
}

}  // namespace
}  // namespace heed::test
