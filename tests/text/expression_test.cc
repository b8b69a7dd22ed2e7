// Expressions match what Oniguruma with Unicode 16 matches, the engine of the package tokenizers 0.23.3, whatever PCRE2's Unicode version.
#include "heed/text/expression.h"

#include <gtest/gtest.h>

#include "heed/text/pattern.h"
#include "heed/text/unicode.h"
#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

using text::CharSet;
using Strings = std::vector<std::string>;

Strings found(const std::string& expression, const std::string& text) {
  std::vector<text::Span> matches;
  text::find_regex(expression, "x")(text, matches);
  Strings out;
  for (const text::Span& match : matches) out.push_back(text.substr(match.begin, match.end - match.begin));
  return out;
}

size_t count_of(const CharSet& set) {
  size_t count = 0;
  for (const auto& [first, last] : set) count += last - first + 1;
  return count;
}

// The number of characters that an expression matches, of all code points.
size_t count_found(const std::string& expression) {
  static const std::string all = [] {
    std::string out;
    for (char32_t c = 0; c < 0x110000; ++c)
      if (c < 0xD800 || c > 0xDFFF) text::append_utf8(out, c);
    return out;
  }();
  std::vector<text::Span> matches;
  text::find_regex(expression, "x")(all, matches);
  size_t count = 0;
  for (const text::Span& match : matches)
    count += static_cast<size_t>(text::count_chars(std::string_view(all).substr(match.begin, match.end - match.begin)));
  return count;
}

// Counts from DerivedGeneralCategory.txt of Unicode 16.
TEST(Expression, categories_are_those_of_unicode_16) {
  const std::pair<const char*, size_t> counts[] = {{"Lu", 1858}, {"Ll", 2258}, {"Lt", 31},  {"Lm", 404},   {"Lo", 136477}, {"Mn", 2020},
                                                   {"Mc", 468},  {"Me", 13},   {"Nd", 760}, {"Nl", 236},   {"No", 915},    {"Pc", 10},
                                                   {"Pd", 27},   {"Ps", 79},   {"Pe", 77},  {"Pi", 12},    {"Pf", 10},     {"Po", 640},
                                                   {"Sm", 950},  {"Sc", 63},   {"Sk", 125}, {"So", 7376},  {"Zs", 17},     {"Zl", 1},
                                                   {"Zp", 1},    {"Cc", 65},   {"Cf", 170}, {"Cn", 819533}};
  for (const auto& [name, count] : counts) EXPECT_EQ(count_of(text::chars_in(name)), count) << name;
  for (const auto& [name, count] : {std::pair("L", 141028), {"M", 2501}, {"P", 855}, {"S", 8514}, {"Nd", 760}})
    EXPECT_EQ(count_found("\\p{" + std::string(name) + "}+"), static_cast<size_t>(count)) << name;
  EXPECT_EQ(count_found("[^\\p{L}]+"), 0x110000u - 0x800 - 141028);
  EXPECT_EQ(count_found("\\P{L}+"), 0x110000u - 0x800 - 141028);
  EXPECT_EQ(count_found("\\w+"), 144671u);
  EXPECT_EQ(count_found("\\s+"), 25u);
  EXPECT_EQ(count_found("\\d+"), 760u);
  EXPECT_EQ(count_found("\\p{Han}+"), 99030u);
  EXPECT_EQ(count_found("[[:punct:]]+"), 9369u);
  EXPECT_EQ(count_found("\\p{Uppercase_Letter}+"), 1858u);
}

TEST(Expression, deepseek_v3_cuts_later_characters_as_the_package_does) {
  const std::string words =
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
      "?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  EXPECT_EQ(found(words, "a\U0001FABF b"), (Strings{"a", "\U0001FABF", " b"}));          // a symbol of Unicode 15
  EXPECT_EQ(found(words, "\U0001FABF\U0001FAE9!"), (Strings{"\U0001FABF\U0001FAE9!"}));  // and of 16
  EXPECT_EQ(found(words, "a\U00010D4A\U0002EBF0"), (Strings{"a\U00010D4A\U0002EBF0"}));  // letters of 16 and 15.1
  EXPECT_EQ(found("[^\\s]+", "a\u180Eb"), (Strings{"a\u180Eb"}));                        // a space to PCRE2
}

TEST(Expression, has_the_syntax_of_ruby) {
  EXPECT_EQ(found("^a|b$", "ab\na\nb"), (Strings{"a", "b", "a", "b"}));      // at every line
  EXPECT_EQ(found("[a-z&&[^aeiou]]+", "banana"), (Strings{"b", "n", "n"}));  // intersection
  EXPECT_EQ(found("[a[0-9]]+", "a1b[2"), (Strings{"a1", "2"}));              // nested class
  EXPECT_EQ(found("[^a-c&&[b-d]]+", "abcd"), (Strings{"a", "d"}));
  EXPECT_EQ(found("a{1,2}+", "aaaaa"), (Strings{"aaaaa"}));  // not possessive
  EXPECT_EQ(found("(?:ab){,2}c", "ababc"), (Strings{"ababc"}));
  EXPECT_EQ(found("\\h+", "cafe 9"), (Strings{"cafe", "9"}));  // hexadecimal digits
  EXPECT_EQ(found("(?m:a.b)", "a\nb"), (Strings{"a\nb"}));
  EXPECT_EQ(found("\\u0061\\x{1F600}", "a\U0001F600"), (Strings{"a\U0001F600"}));
  EXPECT_EQ(found("\\bna", "banana na"), (Strings{"na"}));
  EXPECT_EQ(found("(?i:[\\p{Lu}]+)", "aBc"), (Strings{"aBc"}));  // (?i) applies to a class
  EXPECT_EQ(found("(?i:\\p{Lu}+)", "aBc"), (Strings{"B"}));      // but not to a property outside brackets
  EXPECT_EQ(found("[]a]+", "]a["), (Strings{"]a"}));
  EXPECT_EQ(found("[a\\-z]+", "a-bz"), (Strings{"a-", "z"}));
  expect_refused([] { found("[a", "a"); }, "x: found the expression \"[a\", expected a ] after each [");
  expect_refused([] { found("\\p{Nonsense}", "a"); }, "x: found \\p{Nonsense}, expected a category");
  expect_refused([] { found("[z-a]", "a"); }, "expected an ascending range");
  expect_refused([] { found("(", "a"); }, "expected one that PCRE2 understands");
  expect_refused([] { found(std::string(100000, 'a'), "a"); }, "found an expression of 100000 bytes, expected at most 65536");
  std::string classes;
  for (int i = 0; i < 20000; ++i) classes += "\\w";
  expect_refused([&] { found(classes, "a"); }, "found an expression of 40000 bytes that is too large for PCRE2");
}

TEST(Expression, catastrophic_backtracking_is_an_error) {
  const auto gives_up = [](const std::string& expression, const std::string& text) {
    expect_refused([&] { found(expression, text); }, "x: the expression \"" + expression + "\" gave up at byte 0");
  };
  const std::string letters(5000, 'a');
  gives_up("(a+)+$", letters + "!");
  gives_up("^(([a-z])+.)+[A-Z]([a-z])+$", letters);
  std::string mixed;  // each start position is cheap
  for (int i = 0; i < 40000; ++i) mixed += "ab";
  expect_refused([&] { found("(?:a|b)+[cd]", mixed); }, "it takes too long");
}

}  // namespace
}  // namespace heed::test
