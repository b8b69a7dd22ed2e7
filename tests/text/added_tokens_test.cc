#include "heed/text/added_tokens.h"

#include <gtest/gtest.h>

#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

using Spans = std::vector<text::Span>;

// BERT's tokenizer with one more token, id 30.
Tokenizer with_token(const std::string& content, const Json& flags) {
  Json json = bert_json(), token = {{"id", 30}, {"content", content}, {"normalized", false}};
  token.update(flags);
  json["added_tokens"].push_back(token);
  return tokenizer_of(json);
}

Ids added_ids(const Tokenizer& tokenizer, const std::string& text) { return tokenizer.encode(text, {false}).ids; }

TEST(AddedTokens, are_found_before_anything_else) {
  const Tokenizer tokenizer = with_token("A!a", Json::object());
  EXPECT_EQ(added_ids(tokenizer, "aA!aa"), (Ids{15, 30, 15}));
  EXPECT_EQ(added_ids(tokenizer, "a!a"), (Ids{15, 13, 15}));  // matched as written, not lowercased
  EXPECT_EQ(added_ids(tokenizer, "[MASK]hello[SEP]"), (Ids{4, 14, 3}));
  EXPECT_EQ(added_ids(tokenizer, "[mask]"), (Ids{1, 1, 1}));
  EXPECT_EQ(tokenizer.id_limit(), 31);
  EXPECT_EQ(tokenizer.token(30), "A!a");
  EXPECT_EQ(tokenizer.decode(Ids{30, 4, 15}), "A!a a");  // it is not special, [MASK] is
}

TEST(AddedTokens, leftmost_longest_match_wins) {
  Json json = bert_json();
  int id = 30;
  for (const char* content : {"!a", "!a,", "a,!"})
    json["added_tokens"].push_back({{"id", id++}, {"content", content}, {"normalized", false}});
  EXPECT_EQ(added_ids(tokenizer_of(json), "!a,!"), (Ids{31, 13}));
}

TEST(AddedTokens, lstrip_and_rstrip_take_the_spaces) {
  const Encoding left = with_token("<m>", {{"lstrip", true}}).encode("a \t<m> a", {false});
  EXPECT_EQ(left.ids, (Ids{15, 30, 15}));
  EXPECT_EQ(left.offsets, (Spans{{0, 1}, {1, 6}, {7, 8}}));
  const Encoding right = with_token("<m>", {{"rstrip", true}}).encode("a <m> \u3000a", {false});
  EXPECT_EQ(right.offsets, (Spans{{0, 1}, {2, 9}, {9, 10}}));
}

TEST(AddedTokens, single_word_needs_word_boundaries) {
  const Tokenizer tokenizer = with_token("ello", {{"single_word", true}});
  EXPECT_EQ(added_ids(tokenizer, "hello"), (Ids{14}));
  EXPECT_EQ(added_ids(tokenizer, "a ello!"), (Ids{15, 30, 13}));
  EXPECT_EQ(added_ids(tokenizer, "ello"), (Ids{30}));
  EXPECT_EQ(added_ids(tokenizer, "ello\u00e9"), (Ids{1}));
}

TEST(AddedTokens, normalized_ones_are_found_in_any_case) {
  const Tokenizer tokenizer = with_token("N\u00e9w", {{"normalized", true}});
  EXPECT_EQ(added_ids(tokenizer, "a new NEW N\u00c9w"), (Ids{15, 30, 30, 30}));
  const Encoding encoding = tokenizer.encode("\u00c9 N\u00e9w", {false});
  EXPECT_EQ(encoding.offsets, (Spans{{0, 2}, {3, 7}}));
}

}  // namespace
}  // namespace heed::test
