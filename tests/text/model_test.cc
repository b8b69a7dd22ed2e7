#include "heed/text/model.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::text {
namespace {

using test::Ids;

Vocabulary vocabulary(const std::vector<std::string>& tokens) {
  Vocabulary out;
  for (const std::string& token : tokens) out.add(token, out.count());
  return out;
}

Ids ids(const Model& model, std::string_view word) {
  TokenSpans tokens;
  model.split(word, tokens);
  Ids out;
  for (const TokenSpan& token : tokens) out.push_back(token.id);
  return out;
}

std::vector<Span> spans(const Model& model, std::string_view word) {
  TokenSpans tokens;
  model.split(word, tokens);
  std::vector<Span> out;
  for (const TokenSpan& token : tokens) out.push_back({token.begin, token.end});
  return out;
}

TEST(WordPiece, takes_the_longest_token_that_fits) {
  const ModelPointer model = make_wordpiece(vocabulary({"[UNK]", "un", "##aff", "##able", "una", "##ff", "##\u00e9"}), {}, "v");
  EXPECT_EQ(ids(*model, "unaffable"), (Ids{4, 5, 3}));
  EXPECT_EQ(spans(*model, "unaffable"), (std::vector<Span>{{0, 3}, {3, 5}, {5, 9}}));
  EXPECT_EQ(ids(*model, "un\u00e9"), (Ids{1, 6}));
  EXPECT_EQ(ids(*model, "unx"), (Ids{0}));  // one unknown part makes the whole word unknown
  EXPECT_EQ(spans(*model, "unx"), (std::vector<Span>{{0, 3}}));
  EXPECT_EQ(ids(*model, "able"), (Ids{0}));
}

TEST(WordPiece, long_words_are_unknown) {
  const ModelPointer model = make_wordpiece(vocabulary({"[UNK]", "\u00e9", "##\u00e9"}), {}, "v");
  std::string word;
  for (int i = 0; i < 100; ++i) word += "\u00e9";
  EXPECT_EQ(ids(*model, word).size(), 100u);  // characters count, not bytes
  EXPECT_EQ(ids(*model, word + "\u00e9"), (Ids{0}));
}

TEST(WordLevel, one_word_one_token) {
  const ModelPointer model = make_word_level(vocabulary({"?", "yes"}), "?", "v");
  EXPECT_EQ(ids(*model, "yes"), (Ids{1}));
  EXPECT_EQ(ids(*model, "no"), (Ids{0}));
  test::expect_refused([] { make_word_level(vocabulary({"yes"}), "?", "v"); }, "v: found no \"?\" in the vocabulary");
}

TEST(Bpe, merges_in_the_order_of_the_list) {
  const ModelPointer model =
      make_bpe(vocabulary({"u", "n", "r", "e", "l", "a", "t", "d", "re", "at", "ed", "un", "ated", "rel", "related", "unrelated"}),
               {{"r", "e"}, {"a", "t"}, {"e", "d"}, {"u", "n"}, {"at", "ed"}, {"re", "l"}, {"rel", "ated"}, {"un", "related"}}, {}, "v");
  EXPECT_EQ(ids(*model, "unrelated"), (Ids{15}));
  EXPECT_EQ(ids(*model, "unrelate"), (Ids{11, 13, 9, 3}));
  EXPECT_EQ(spans(*model, "unrelate"), (std::vector<Span>{{0, 2}, {2, 5}, {5, 7}, {7, 8}}));
  EXPECT_EQ(ids(*model, "unxre"), (Ids{11, 8}));  // no unknown token: x is dropped
}

TEST(Bpe, unknown_text) {
  BpeOptions options{"?", "", ""};
  EXPECT_EQ(ids(*make_bpe(vocabulary({"?", "a"}), {}, options, "v"), "xyaz"), (Ids{0, 0, 1, 0}));
  options.fuse_unknown = true;
  const ModelPointer fused = make_bpe(vocabulary({"?", "a"}), {}, options, "v");
  EXPECT_EQ(ids(*fused, "xyaz"), (Ids{0, 1, 0}));
  EXPECT_EQ(spans(*fused, "xyaz"), (std::vector<Span>{{0, 2}, {2, 3}, {3, 4}}));
  options.byte_fallback = true;
  const ModelPointer bytes = make_bpe(vocabulary({"?", "a", "<0xC3>", "<0xA9>"}), {}, options, "v");
  EXPECT_EQ(ids(*bytes, "a\u00e9\u00e8"), (Ids{1, 2, 3, 0}));
}

TEST(Bpe, prefixes_and_suffixes) {
  BpeOptions options;
  options.continuing_prefix = "##";
  EXPECT_EQ(ids(*make_bpe(vocabulary({"a", "##b", "ab"}), {{"a", "##b"}}, options, "v"), "abb"), (Ids{2, 1}));
  options = {};
  options.word_suffix = "</w>";
  EXPECT_EQ(ids(*make_bpe(vocabulary({"a", "b", "b</w>", "ab</w>"}), {{"a", "b</w>"}}, options, "v"), "ab"), (Ids{3}));
}

TEST(Bpe, whole_words_before_merges) {
  BpeOptions options;
  options.byte_level = options.ignore_merges = true;
  const ModelPointer model = make_bpe(vocabulary({"a", "b", "\u0120", "\u0120ab"}), {}, options, "v");
  EXPECT_EQ(ids(*model, " ab"), (Ids{3}));
  EXPECT_EQ(ids(*model, "ab"), (Ids{0, 1}));
}

// Long and short words use different algorithms; the reference is a plain scan.
TEST(Bpe, long_and_short_words_agree_with_a_plain_scan) {
  const std::vector<std::string> tokens = {"a", "b", "c", "aa", "ab", "ba", "aab", "abab", "bc", "cab", "aaaa"};
  const Merges merges = {{"a", "b"}, {"a", "a"}, {"aa", "b"}, {"ab", "ab"}, {"b", "c"}, {"c", "ab"}, {"aa", "aa"}, {"b", "a"}};
  const ModelPointer model = make_bpe(vocabulary(tokens), merges, {}, "v");
  uint32_t state = 7;
  for (const size_t length : {1, 2, 5, 39, 40, 41, 42, 100, 333}) {
    std::string word;
    std::vector<std::string> parts;
    for (size_t i = 0; i < length; ++i) word += "aaabbc"[((state = state * 1664525 + 1013904223) >> 10) % 6];
    for (const char c : word) parts.emplace_back(1, c);
    for (;;) {
      size_t best = merges.size(), at = 0;
      for (size_t i = 0; i + 1 < parts.size(); ++i)
        for (size_t rank = 0; rank < best; ++rank)
          if (merges[rank] == std::pair(parts[i], parts[i + 1])) best = rank, at = i;
      if (best == merges.size()) break;
      parts[at] += parts[at + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    Ids expected;
    for (const std::string& part : parts) expected.push_back(model->vocabulary().find(part));
    EXPECT_EQ(ids(*model, word), expected) << word;
  }
}

TEST(Bpe, a_word_of_megabytes_is_not_quadratic) {
  const ModelPointer model = make_bpe(vocabulary({"a", "aa", "aaaa"}), {{"a", "a"}, {"aa", "aa"}}, {}, "v");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ids(*model, std::string(1 << 20, 'a')).size(), size_t{1} << 18);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20);  // quadratic: hours
}

TEST(Bpe, refuses_merges_of_unknown_tokens) {
  test::expect_refused(
      [] {
        make_bpe(vocabulary({"a", "b"}), {{"a", "b"}}, {}, "v");
      },
      "v: merge 0: found \"ab\", expected a token of the vocabulary");
  test::expect_refused([] { make_bpe(vocabulary({"a"}), {}, {"?", "", ""}, "v"); }, "v: found no \"?\" in the vocabulary");
}

TEST(Unigram, takes_the_most_likely_segmentation) {
  const ModelPointer model =
      make_unigram(vocabulary({"<unk>", "a", "b", "c", "d", "cd", "ab", "abc", "abcd"}), {0, 0, 0, 0, 0, 1, 2, 5, 10}, {0, false}, "v");
  EXPECT_EQ(ids(*model, "abcd"), (Ids{8}));
  EXPECT_EQ(ids(*model, "abcdacdxx"), (Ids{8, 1, 5, 0}));
  EXPECT_EQ(spans(*model, "axx\u00e9a"), (std::vector<Span>{{0, 1}, {1, 5}, {5, 6}}));  // unknown text is one token
}

TEST(Unigram, falls_back_to_bytes) {
  const ModelPointer model = make_unigram(vocabulary({"<unk>", "a", "<0xC3>", "<0xA9>"}), {0, -1, -2, -2}, {0, true}, "v");
  EXPECT_EQ(ids(*model, "a\u00e9a\u00e8"), (Ids{1, 2, 3, 1, 0}));
}

TEST(Unigram, refuses_what_does_not_fit) {
  test::expect_refused([] { make_unigram(vocabulary({"a", "b"}), {0}, {0, false}, "v"); }, "v: found 1 scores for 2 tokens");
  test::expect_refused(
      [] {
        make_unigram(vocabulary({"a"}), {0}, {1, false}, "v");
      },
      "v: found the unknown token 1, expected an id below 1");
  const ModelPointer model = make_unigram(vocabulary({"a"}), {0}, {-1, false}, "v");
  expect_error([&] { ids(*model, "ab"); }, "unigram: found \"b\", which no token covers");
}

TEST(Merges, are_read_from_lines) {
  const test::Folder folder;
  test::put(folder / "merges.txt", "#version: 0.2\na b\r\n\n# c\n");
  test::expect_refused([&] { read_merges(folder / "merges.txt"); }, "line 3: found \"\", expected two tokens");
  test::put(folder / "merges.txt", "#version: 0.2\na b\r\n# c\n");
  EXPECT_EQ(read_merges(folder / "merges.txt"), (Merges{{"a", "b"}, {"#", "c"}}));
  test::put(folder / "merges.txt", "a b c\n");
  test::expect_refused([&] { read_merges(folder / "merges.txt"); }, "line 1: found \"a b c\", expected two tokens with one space between");
}

}  // namespace
}  // namespace heed::text
