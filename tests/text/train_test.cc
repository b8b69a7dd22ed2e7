#include "heed/text/train_vocabulary.h"

#include <gtest/gtest.h>

#include "heed/core/parallel.h"
#include "heed/text/tokenizer.h"
#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

using Strings = std::vector<std::string>;

TEST(TrainMerges, takes_the_most_frequent_pair_first) {
  // hug 10, pug 5, pun 12, bun 4, hugs 5: u-g 20, u-n 16, h-u 15, ...
  const std::vector<text::CountedWord> words = {{"bun", 4}, {"hug", 10}, {"hugs", 5}, {"pug", 5}, {"pun", 12}};
  const text::TrainedMerges trained_merges = text::train_merges(words, {"b", "g", "h", "n", "p", "s", "u"}, "", 10, 1);
  EXPECT_EQ(trained_merges.merges, (text::Merges{{"u", "g"}, {"u", "n"}, {"h", "ug"}}));
  EXPECT_EQ(trained_merges.tokens, (Strings{"b", "g", "h", "n", "p", "s", "u", "ug", "un", "hug"}));
  EXPECT_EQ(text::train_merges(words, {"u", "g", "n"}, "", 100, 17).merges, (text::Merges{{"u", "g"}}));  // the next pair is too rare
}

TEST(TrainMerges, continuing_tokens_carry_the_prefix) {
  const text::TrainedMerges trained_merges = text::train_merges({{"ab", 3}, {"abb", 2}}, {"a", "b"}, "##", 100, 1);
  EXPECT_EQ(trained_merges.tokens, (Strings{"a", "b", "##b", "ab", "abb"}));
  EXPECT_EQ(trained_merges.merges, (text::Merges{{"a", "##b"}, {"ab", "##b"}}));
}

TEST(TrainMerges, runs_of_one_letter) {
  const text::TrainedMerges trained_merges = text::train_merges({{"aaaaa", 1}}, {"a"}, "", 100, 1);
  EXPECT_EQ(trained_merges.tokens, (Strings{"a", "aa", "aaa", "aaaaa"}));  // on ties the pair with the smaller ids
}

class VocabularyTraining : public testing::Test {
 protected:
  VocabularyTraining() {
    std::string text;
    for (int i = 0; i < 3000; ++i)
      text += i % 3 ? "The lower the newest, the widest.\n" : "Low, lowest; new \u00c9t\u00e9 " + std::to_string(i % 17) + "!\n";
    put(folder / "text.txt", text);
  }
  TrainedVocabulary train(VocabularyKind kind, int64_t size, const std::string& name = "out") {
    const std::vector<Path> files = {folder / "text.txt"};
    TrainVocabularyOptions options;
    options.kind = kind;
    options.size = size;
    return train_vocabulary(files, folder / name, options);
  }
  const Folder folder;
};

TEST_F(VocabularyTraining, wordpiece) {
  const TrainedVocabulary trained = train(VocabularyKind::wordpiece, 60);
  EXPECT_EQ(trained.tokens, 60);
  const Tokenizer tokenizer = Tokenizer::open(folder / "out");
  EXPECT_EQ(tokenizer.id("[MASK]"), 4);
  const Encoding encoding = tokenizer.encode("The newest \u00c9t\u00e9!");
  EXPECT_EQ(tokenizer.decode(encoding.ids), "the newest ete!");
  EXPECT_EQ(encoding.ids.front(), 2);
  EXPECT_EQ(encoding.ids.back(), 3);
  std::filesystem::remove(folder / "out" / "tokenizer.json");  // the older files give the same ids
  EXPECT_EQ(Tokenizer::open(folder / "out").encode("The newest \u00c9t\u00e9!").ids, encoding.ids);
}

TEST_F(VocabularyTraining, byte_level_bpe) {
  EXPECT_EQ(train(VocabularyKind::bpe, 300).tokens, 300);
  const Tokenizer tokenizer = Tokenizer::open(folder / "out");
  const std::string text = "The newest \u00c9t\u00e9,\n\tand \u4f60!";
  const Encoding encoding = tokenizer.encode(text);
  EXPECT_EQ(tokenizer.decode(encoding.ids), text);  // lossless
  EXPECT_LT(encoding.size(), std::ssize(text));
  std::filesystem::remove(folder / "out" / "tokenizer.json");
  EXPECT_EQ(Tokenizer::open(folder / "out").encode(text).ids, encoding.ids);
}

TEST_F(VocabularyTraining, words_and_characters) {
  train(VocabularyKind::words, 8);
  const Tokenizer words = Tokenizer::open(folder / "out");
  EXPECT_EQ(words.token(4), "the");  // the most frequent
  EXPECT_EQ(words.decode(words.encode("The lower never").ids, false), "the lower <unk>");
  train(VocabularyKind::characters, 100, "characters");
  const Tokenizer characters = Tokenizer::open(folder / "characters");
  EXPECT_EQ(characters.decode(characters.encode("new \u00e9\n").ids), "new \u00e9\n");
  EXPECT_EQ(characters.encode("new").size(), 3);
}

TEST_F(VocabularyTraining, gives_the_same_files_with_any_number_of_threads) {
  const int before = thread_count();
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    train(VocabularyKind::wordpiece, 80, "w" + std::to_string(threads));
    train(VocabularyKind::bpe, 290, "b" + std::to_string(threads));
  }
  set_thread_count(before);
  for (const char* kind : {"w", "b"})
    for (const char* threads : {"2", "7"})
      EXPECT_EQ(get(folder / (std::string(kind) + threads) / "tokenizer.json"), get(folder / (std::string(kind) + "1") / "tokenizer.json"));
}

TEST_F(VocabularyTraining, refuses_missing_texts_and_small_sizes) {
  expect_refused([&] { train_vocabulary(std::vector<Path>{folder / "none.txt"}, folder / "out", {}); }, "none.txt");
  put(folder / "text.txt", " \n\n");
  expect_refused([&] { train(VocabularyKind::wordpiece, 60); }, "text.txt: found no words, expected text to train on");
  put(folder / "text.txt", "");
  expect_refused([&] { train(VocabularyKind::bpe, 300); }, "found no words");
  EXPECT_THROW(train(VocabularyKind::wordpiece, 5), Error);
  put(folder / "text.txt",
      "a\xFF\xFE"
      "b a\n");
  EXPECT_GT(train(VocabularyKind::bpe, 300).tokens, 256);
}

}  // namespace
}  // namespace heed::test
