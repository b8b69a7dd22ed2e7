// Whole tokenizers: text to ids, offsets, pairs, truncation, padding, and back.
#include "heed/text/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "heed/core/parallel.h"
#include "tests/expect_error.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

using Spans = std::vector<text::Span>;
using Masks = std::vector<uint8_t>;

TEST(Tokenizer, bert) {
  const Tokenizer tokenizer = tokenizer_of(bert_json());
  const Encoding encoding = tokenizer.encode("Hello, UNAFFABLE \u4f60\u597d xyz!");
  EXPECT_EQ(encoding.ids, (Ids{2, 14, 12, 5, 6, 7, 16, 17, 1, 13, 3}));
  EXPECT_EQ(encoding.offsets, (Spans{{0, 0}, {0, 5}, {5, 6}, {7, 9}, {9, 12}, {12, 16}, {17, 20}, {20, 23}, {24, 27}, {27, 28}, {0, 0}}));
  EXPECT_EQ(encoding.special_mask, (Masks{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(encoding.attention_mask, Masks(11, 1));
  EXPECT_EQ(encoding.type_ids, Ids(11, 0));
  EXPECT_EQ(tokens_of(tokenizer, encoding)[4], "##aff");
}

TEST(Tokenizer, accents_marks_and_joined_emoji) {
  const Tokenizer tokenizer = tokenizer_of(bert_json());
  EXPECT_EQ(tokenizer.encode("H\u00e9ll\u00d6", {false}).ids, (Ids{14}));
  const Encoding marked = tokenizer.encode("he\u0301llo", {false});
  EXPECT_EQ(marked.ids, (Ids{14}));
  EXPECT_EQ(marked.offsets, (Spans{{0, 7}}));
  EXPECT_EQ(tokenizer.encode("\U0001F468\u200D\U0001F469 hello", {false}).ids, (Ids{1, 14}));  // the joiner is dropped, the rest is unknown
  EXPECT_EQ(tokenizer.encode("he\u00ADllo\x07", {false}).ids, (Ids{14}));
  EXPECT_EQ(tokenizer.encode("a's", {false}).ids, (Ids{15, 20, 1}));
}

TEST(Tokenizer, empty_text_gives_only_special_tokens) {
  const Tokenizer tokenizer = tokenizer_of(bert_json());
  for (const char* text : {"", " ", "\n\t", "\u200B"}) EXPECT_EQ(tokenizer.encode(text).ids, (Ids{2, 3})) << text;
  EXPECT_EQ(tokenizer.encode("", {false}).size(), 0);
}

TEST(Tokenizer, pairs) {
  const Tokenizer tokenizer = tokenizer_of(bert_json());
  const Encoding encoding = tokenizer.encode("hello", "wanted a");
  EXPECT_EQ(encoding.ids, (Ids{2, 14, 3, 8, 9, 15, 3}));
  EXPECT_EQ(encoding.type_ids, (Ids{0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(encoding.offsets, (Spans{{0, 0}, {0, 5}, {0, 0}, {0, 4}, {4, 6}, {7, 8}, {0, 0}}));
  EXPECT_EQ(tokenizer.encode("hello", "a", {false}).type_ids, (Ids{0, 1}));
}

TEST(Tokenizer, truncation) {
  const Tokenizer tokenizer = tokenizer_of(bert_json());
  EncodeOptions options;
  const auto ids = [&](const char* text) { return tokenizer.encode(text, options).ids; };
  const auto pair_ids = [&](const char* a, const char* b) { return tokenizer.encode(a, b, options).ids; };
  options.max_length = 4;
  EXPECT_EQ(ids("a , ! hello"), (Ids{2, 15, 12, 3}));
  options.truncation_side = Side::left;
  EXPECT_EQ(ids("a , ! hello"), (Ids{2, 13, 14, 3}));
  options.truncation_side = Side::right;
  options.max_length = 7;  // four after the special tokens
  EXPECT_EQ(pair_ids("a", "a , ! hello a"), (Ids{2, 15, 3, 15, 12, 13, 3}));
  EXPECT_EQ(pair_ids("a , ! hello a", "a"), (Ids{2, 15, 12, 13, 3, 15, 3}));
  EXPECT_EQ(pair_ids("a , ! hello", "! ! ! ! !"), (Ids{2, 15, 12, 3, 13, 13, 3}));
  options.truncation = Truncation::only_first;
  EXPECT_EQ(pair_ids("a , ! hello", "! !"), (Ids{2, 15, 12, 3, 13, 13, 3}));
  expect_error([&] { pair_ids("a", "! ! ! ! !"); }, "encode: found 6 tokens and 1 of them in the text to truncate");
  options.truncation = Truncation::only_second;
  EXPECT_EQ(pair_ids("a , !", "! ! ! !"), (Ids{2, 15, 12, 13, 3, 13, 3}));
  expect_error([&] { ids("a a a a a a a a"); }, "found one text, expected a pair");
  options = {};
  options.max_length = 1;
  expect_error([&] { ids("a"); }, "encode: found a max_length of 1, expected at least 2, the number of special tokens");
  options.max_length = 2;
  EXPECT_EQ(ids("hello"), (Ids{2, 3}));
}

TEST(Tokenizer, batches_are_padded) {
  const Tokenizer tokenizer = tokenizer_of(bert_json());
  const std::vector<std::string> texts = {"hello", "a , !"};
  EncodedBatch batch = tokenizer.encode_batch(texts);
  EXPECT_EQ(batch.input_ids.shape(), (Shape{2, 5}));
  EXPECT_EQ(batch.input_ids.dtype(), DType::i64);
  EXPECT_EQ(batch.input_ids.to_vector<int64_t>(), (std::vector<int64_t>{2, 14, 3, 0, 0, 2, 15, 12, 13, 3}));
  EXPECT_EQ(batch.attention_mask.to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 1, 0, 0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(batch.token_type_ids.to_vector<int64_t>(), std::vector<int64_t>(10, 0));
  Padding padding;
  padding.multiple_of = 4;
  padding.side = Side::left;
  padding.id = 4;
  batch = tokenizer.encode_batch(texts, {}, padding);
  EXPECT_EQ(batch.input_ids.to_vector<int64_t>(), (std::vector<int64_t>{4, 4, 4, 4, 4, 2, 14, 3, 4, 4, 4, 2, 15, 12, 13, 3}));
  Encoding one = tokenizer.encode("a");
  tokenizer.pad(one, 5);
  EXPECT_EQ(one.ids, (Ids{2, 15, 3, 0, 0}));
  EXPECT_EQ(one.special_mask, (Masks{1, 0, 1, 1, 1}));
  expect_error([&] { tokenizer.batch({}); }, "batch: found no texts");
}

TEST(Tokenizer, decodes) {
  const Tokenizer tokenizer = tokenizer_of(bert_json());
  EXPECT_EQ(tokenizer.decode(Ids{2, 14, 12, 5, 6, 7, 13, 3}), "hello, unaffable!");
  EXPECT_EQ(tokenizer.decode(Ids{2, 14, 3}, false), "[CLS] hello [SEP]");
  EXPECT_EQ(tokenizer.decode(Ids{}), "");
  expect_error([&] { tokenizer.decode(Ids{99}); }, "decode: found the id 99, expected one of the 22 tokens, all below 22");
  expect_error([&] { tokenizer.decode(Ids{-1}); }, "decode: found the id -1");
}

TEST(Tokenizer, knows_its_tokens) {
  const Tokenizer tokenizer = tokenizer_of(bert_json());
  EXPECT_EQ(tokenizer.id_limit(), 22);
  EXPECT_EQ(tokenizer.id("hello"), 14);
  EXPECT_EQ(tokenizer.id("nobody"), std::nullopt);
  EXPECT_EQ(tokenizer.padding_id(), 0);
  EXPECT_TRUE(tokenizer.is_special(4) && !tokenizer.is_special(14) && !tokenizer.has(22) && !tokenizer.has(-1));
  expect_error([&] { tokenizer.token(22); }, "token: found the id 22");
}

// A small byte-level BPE tokenizer in GPT-2's format.
Json gpt2_json(bool prefix_space) {
  std::vector<std::string> tokens = {"<|endoftext|>", "h",     "i", "\u0120", "hi", "\u0120hi", "!", "\u00c3", "\u00a9",
                                     "\u00c3\u00a9",  "\u010a"};
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"added_tokens", {{{"id", 0}, {"content", "<|endoftext|>"}, {"special", true}}}},
          {"pre_tokenizer", byte_level},
          {"post_processor", byte_level},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", numbered(tokens)}, {"merges", {"h i", "\u0120 hi", "\u00c3 \u00a9"}}}}};
}

TEST(Tokenizer, byte_level_bpe) {
  const Tokenizer tokenizer = tokenizer_of(gpt2_json(false));
  const Encoding encoding = tokenizer.encode("hi hi!\u00e9  hi<|endoftext|>hi\n");
  EXPECT_EQ(encoding.ids, (Ids{4, 5, 6, 9, 3, 5, 0, 4, 10}));
  EXPECT_EQ(encoding.offsets, (Spans{{0, 2}, {3, 5}, {5, 6}, {6, 8}, {9, 9}, {10, 12}, {12, 25}, {25, 27}, {27, 28}}));
  EXPECT_EQ(tokenizer.decode(encoding.ids), "hi hi!\u00e9  hihi\n");
  EXPECT_EQ(tokenizer.decode(Ids{7, 4}), "\uFFFDhi");  // half of a character
  EXPECT_EQ(tokenizer.encode("hi", "hi").type_ids, (Ids{0, 1}));
  EXPECT_EQ(tokenizer_of(gpt2_json(true)).encode("hi").ids, (Ids{5}));
  EXPECT_EQ(tokenizer_of(gpt2_json(true)).encode("hi").offsets, (Spans{{0, 2}}));
  EXPECT_FALSE(tokenizer.padding_id().has_value());
  const std::vector<std::string> texts = {"hi", "hi!"};
  expect_error([&] { tokenizer.encode_batch(texts); }, "pad: the tokenizer has no padding token");
}

TEST(Tokenizer, displays_tokens_as_text) {
  const Tokenizer bytes = tokenizer_of(gpt2_json(false));
  const auto shown = [](const Tokenizer& tokenizer, std::initializer_list<int64_t> ids) {
    std::string out;
    for (const int64_t id : ids) out += (out.empty() ? "" : " ") + tokenizer.display(id);
    return out;
  };
  EXPECT_EQ(shown(bytes, {4, 5, 3, 9, 10}), "hi \u00b7hi \u00b7 \u00e9 \u23ce");
  EXPECT_EQ(shown(bytes, {7, 8, 0, 99}), "<0xC3> <0xA9> <|endoftext|> 99");
  EXPECT_EQ(bytes.token(9), "\u00c3\u00a9");  // as stored in the file
  const Tokenizer words = tokenizer_of(bert_json());
  EXPECT_EQ(shown(words, {2, 6, 18, 16}), "[CLS] ##aff \u00e9 \u4f60");
  const Json metaspace = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}};
  const Json model = Json::parse(
      R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["\u2581hi", -1], ["<0x0A>", -2], ["<0xC3>", -2], ["a\tb", -2]]})");
  EXPECT_EQ(shown(tokenizer_of(with_model(model, {{"pre_tokenizer", metaspace}, {"decoder", metaspace}})), {1, 2, 3, 4}),
            "\u00b7hi \u23ce <0xC3> a\u21e5b");
}

TEST(Tokenizer, metaspace_and_its_decoder) {
  const Json metaspace = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}};
  const Json model =
      Json::parse(R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["\u2581hi", -1], ["\u2581", -2], ["!", -2]]})");
  const Tokenizer tokenizer = tokenizer_of(with_model(model, {{"pre_tokenizer", metaspace}, {"decoder", metaspace}}));
  EXPECT_EQ(tokenizer.encode("hi hi!").ids, (Ids{1, 1, 3}));
  EXPECT_EQ(tokenizer.decode(Ids{1, 1, 3}), "hi hi!");
}

TEST(Tokenizer, llama_style_decoder) {
  const Json decoder = {{"type", "Sequence"},
                        {"decoders",
                         {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                          {{"type", "ByteFallback"}},
                          {{"type", "Fuse"}},
                          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  const Json model = {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", numbered({"?", "\u2581hi", "<0xC3>", "<0xA9>", "<0x0a>"})}};
  const Tokenizer tokenizer = tokenizer_of(with_model(model, {{"decoder", decoder}}));
  EXPECT_EQ(tokenizer.decode(Ids{1, 1, 2, 3, 4}), "hi hi\u00e9\n");
  EXPECT_EQ(tokenizer.decode(Ids{2, 4, 1}), "\uFFFD\uFFFD hi");
}

TEST(Tokenizer, roberta_joins_pairs_with_two_separators) {
  const Json model = {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", numbered({"?", "<s>", "</s>", "a"})}};
  const Json processor = {{"type", "RobertaProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}, {"trim_offsets", true}};
  const Tokenizer tokenizer = tokenizer_of(with_model(model, {{"post_processor", processor}}));
  EXPECT_EQ(tokenizer.encode("a", "a").ids, (Ids{1, 3, 2, 2, 3, 2}));
  EXPECT_EQ(tokenizer.encode("a", "a").type_ids, Ids(6, 0));
}

TEST(Tokenizer, invalid_utf8_counts_as_replacement_characters) {
  const Tokenizer bert = tokenizer_of(bert_json());
  const Encoding encoding = bert.encode("hello\xFF \xE2\x82 a", {false});
  EXPECT_EQ(encoding.ids, (Ids{14, 15}));  // BERT drops U+FFFD
  EXPECT_EQ(encoding.offsets, (Spans{{0, 5}, {10, 11}}));
  std::string all;
  for (int i = 0; i < 4096; ++i) all += static_cast<char>(i * 37 % 256);
  for (const Tokenizer& tokenizer : {bert, tokenizer_of(gpt2_json(false))})
    for (const text::Span at : tokenizer.encode(all).offsets) EXPECT_LE(at.end, all.size());
}

TEST(Tokenizer, a_line_of_megabytes) {
  const auto start = std::chrono::steady_clock::now();
  std::string words, letters(size_t{2} << 20, 'h'), spaces(size_t{2} << 20, ' '), marks = "a";
  for (int i = 0; i < 100'000; ++i) words += "hello, unaffable ";
  for (int i = 0; i < 500'000; ++i) marks += i % 2 ? "\u0301" : "\u0323";
  for (const Tokenizer& tokenizer : {tokenizer_of(bert_json()), tokenizer_of(gpt2_json(false))})
    for (const std::string* text : {&words, &letters, &spaces, &marks}) EXPECT_LE(tokenizer.encode(*text).size(), std::ssize(*text));
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 120);  // quadratic: days
}

TEST(Tokenizer, the_number_of_threads_does_not_matter) {
  const Tokenizer tokenizer = tokenizer_of(gpt2_json(false));
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back(std::string(static_cast<size_t>(i % 7), 'h') + "hi!" + std::to_string(i));
  const int before = thread_count();
  std::vector<std::vector<Encoding>> results;
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    results.push_back(tokenizer.encode_all(texts));
  }
  set_thread_count(before);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(results[0][i].ids, results[1][i].ids);
    EXPECT_EQ(results[0][i].ids, results[2][i].ids);
    EXPECT_EQ(results[0][i].ids, tokenizer.encode(texts[i]).ids);
  }
}

}  // namespace
}  // namespace heed::test
