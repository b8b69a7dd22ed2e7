#include <gtest/gtest.h>

#include "heed/text/pattern.h"
#include "heed/text/pre_tokenizer.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

using Strings = std::vector<std::string>;

Json of_type(const std::string& type) { return {{"type", type}}; }
Json split(const Json& pattern, const std::string& behavior, bool invert = false) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}};
}
const Json kDash = {{"String", "-"}};
const char* const kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char* const kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(PreTokenizer, bert) {
  EXPECT_EQ(split_words("Hey, you!? ok\u3002", of_type("BertPreTokenizer")), (Strings{"Hey", ",", "you", "!", "?", "ok", "\u3002"}));
  EXPECT_EQ(split_words(" \t ", of_type("BertPreTokenizer")), Strings{});
}

TEST(PreTokenizer, white_space) {
  EXPECT_EQ(split_words("I'm here... \u00e9_1", of_type("Whitespace")), (Strings{"I", "'", "m", "here", "...", "\u00e9_1"}));
  EXPECT_EQ(split_words("I'm  here\u3000x\n", of_type("WhitespaceSplit")), (Strings{"I'm", "here", "x"}));
}

TEST(PreTokenizer, split_behaviors) {
  const std::string text = "the-final--countdown";
  EXPECT_EQ(split_words(text, split(kDash, "Removed")), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(split_words(text, split(kDash, "Isolated")), (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split_words(text, split(kDash, "MergedWithPrevious")), (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split_words(text, split(kDash, "MergedWithNext")), (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split_words(text, split(kDash, "Contiguous")), (Strings{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split_words(text, split({{"Regex", "[a-z]+"}}, "Removed", true)), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(split_words("-a-", split(kDash, "MergedWithPrevious")), (Strings{"-", "a-"}));
  EXPECT_EQ(split_words("-a-", split(kDash, "MergedWithNext")), (Strings{"-a", "-"}));
}

TEST(PreTokenizer, digits_and_punctuation) {
  EXPECT_EQ(split_words("ab12\u0663c", {{"type", "Digits"}, {"individual_digits", true}}), (Strings{"ab", "1", "2", "\u0663", "c"}));
  EXPECT_EQ(split_words("ab12c", {{"type", "Digits"}, {"individual_digits", false}}), (Strings{"ab", "12", "c"}));
  EXPECT_EQ(split_words("a!?b", {{"type", "Punctuation"}, {"behavior", "Contiguous"}}), (Strings{"a", "!?", "b"}));
  EXPECT_EQ(split_words("a!?b", of_type("Punctuation")), (Strings{"a", "!", "?", "b"}));
}

TEST(PreTokenizer, sequence) {
  const Json both = {{"type", "Sequence"},
                     {"pretokenizers", {of_type("WhitespaceSplit"), {{"type", "Digits"}, {"individual_digits", true}}}}};
  EXPECT_EQ(split_words("a12 b", both), (Strings{"a", "1", "2", "b"}));
}

TEST(PreTokenizer, metaspace_marks_the_start_of_words) {
  using text::Span;
  const auto words = [](const std::string& text, const std::string& scheme) {
    return words_of(text, {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}, {"split", true}});
  };
  EXPECT_EQ(words("Hey  you", "always"), (std::vector<Span>{{0, 3}, {3, 4}, {4, 8}}));
  EXPECT_EQ(words(" a", "always"), (std::vector<Span>{{0, 2}}));
  EXPECT_EQ(words("a b", "never"), (std::vector<Span>{{0, 1}, {1, 3}}));
}

TEST(PreTokenizer, gpt2_expression) {
  const auto gpt2 = [](const std::string& text) { return split_words(text, split({{"Regex", kGpt2}}, "Isolated")); };
  EXPECT_EQ(gpt2("Hello, I'll go 12 x"), (Strings{"Hello", ",", " I", "'ll", " go", " 12", " x"}));
  EXPECT_EQ(gpt2("a   b"), (Strings{"a", "  ", " b"}));
  EXPECT_EQ(gpt2("a  \n b  "), (Strings{"a", "  \n", " b", "  "}));
  EXPECT_EQ(gpt2("\ta"), (Strings{"\t", "a"}));
  EXPECT_EQ(gpt2("it's'S''t"), (Strings{"it", "'s", "'", "S", "''", "t"}));
  EXPECT_EQ(gpt2("\u4f60\u597d!?1\u00b2a"), (Strings{"\u4f60\u597d", "!?", "1\u00b2", "a"}));
  EXPECT_EQ(gpt2("e\u0301"), (Strings{"e", "\u0301"}));  // a mark is not a letter
  EXPECT_EQ(gpt2(" "), (Strings{" "}));
  EXPECT_EQ(gpt2(""), Strings{});
}

TEST(PreTokenizer, llama3_expression) {
  const auto llama = [](const std::string& text) { return split_words(text, split({{"Regex", kLlama3}}, "Isolated")); };
  EXPECT_EQ(llama("I'LL go 12345!\n\nx"), (Strings{"I", "'LL", " go", " ", "123", "45", "!\n\n", "x"}));
  EXPECT_EQ(llama("a'\u017Fb x'Sy \r\n\n  z"), (Strings{"a", "'\u017F", "b", " x", "'S", "y", " \r\n\n", " ", " z"}));
  EXPECT_EQ(llama("\tfoo $bar"), (Strings{"\tfoo", " $", "bar"}));
}

// The scanners must agree with the expressions they replace. Appending "|$^", which never matches, selects PCRE2.
TEST(PreTokenizer, scanners_agree_with_the_expressions) {
  const char* const parts[] = {"a",      "Z", "\u00e9", "\u4f60", "1",   "\u0663", "\u00b2", " ",      "  ",         "\n", "\r\n",   "\t",
                               "\u3000", "'", "'s",     "'LL",    "'re", "!",      "\u0301", "\u200d", "\U0001F468", "_",  "\u2028", "-"};
  uint32_t state = 1;
  for (const char* expression : {kGpt2, kLlama3}) {
    const text::Finder fast = text::find_regex(expression, "x"), general = text::find_regex(std::string(expression) + "|$^", "x");
    for (int trial = 0; trial < 3000; ++trial) {
      std::string text;
      for (int i = 0; i < 8; ++i) text += parts[((state = state * 1664525 + 1013904223) >> 8) % std::size(parts)];
      std::vector<text::Span> a, b;
      fast(text, a);
      general(text, b);
      ASSERT_EQ(a, b) << text;
    }
  }
}

TEST(PreTokenizer, catastrophic_backtracking_is_an_error_and_no_hang) {
  const Json json = split({{"Regex", "(?:x+x+)+[yz]"}}, "Isolated");
  expect_error([&] { split_words(std::string(5000, 'x'), json); }, "gave up at byte");
}

TEST(PreTokenizer, refuses_what_it_does_not_know) {
  const auto refused = [](const Json& json, const std::string& fragment) {
    expect_refused([&] { text::make_pre_tokenizer({json, "p"}); }, fragment);
  };
  refused(of_type("UnicodeScripts"), "p: found the pre-tokenizer \"UnicodeScripts\", expected one of BertPreTokenizer");
  refused(split(kDash, "Sideways"), "p: found the behavior \"Sideways\"");
  refused({{"type", "Sequence"}, {"pretokenizers", {of_type("ByteLevel"), of_type("Digits")}}},
          "p: pretokenizers[1]: found \"Digits\" after ByteLevel");
  refused({{"type", "Metaspace"}, {"prepend_scheme", "last"}}, "found the prepend_scheme \"last\"");
  refused({{"type", "Split"}, {"pattern", {{"Regex", "["}}}, {"behavior", "Isolated"}}, "p: pattern: found the expression \"[\"");
  refused(Json::array(), "p: found \"[]\", expected an object with \"type\"");
}

}  // namespace
}  // namespace heed::test
