#include "heed/text/unicode.h"

#include <gtest/gtest.h>

#include "heed/text/aligned.h"
#include "heed/text/byte_chars.h"

namespace heed::text {
namespace {

TEST(Unicode, utf8_round_trip) {
  for (const char32_t c : {0u, 0x41u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    const std::string text = utf8(c);
    size_t i = 0;
    EXPECT_EQ(next_char(text, i), c);
    EXPECT_EQ(i, text.size());
    EXPECT_EQ(char_bytes(text[0]), text.size());
    EXPECT_EQ(find_bad_utf8(text), std::string::npos);
  }
}

TEST(Unicode, bad_bytes_are_found_and_repaired_as_decoders_do) {
  const auto expect = [](const std::string& bytes, const std::string& repaired) { EXPECT_EQ(repaired_utf8(bytes), repaired); };
  const std::string r = "\uFFFD";
  expect("", "");
  expect("a\x80z", "a" + r + "z");
  expect("\xC0\xAF", r + r);                  // overlong
  expect("\xE2\x82z", r + "z");               // truncated: one error
  expect("\xF0\x9F\x98", r);                  // truncated at the end
  expect("\xED\xA0\x80", r + r + r);          // a surrogate
  expect("\xF4\x90\x80\x80", r + r + r + r);  // above U+10FFFF
  expect("\xF8\x88", r + r);
  expect(std::string(20, 'x') + "\xFF" + std::string(20, 'y'), std::string(20, 'x') + r + std::string(20, 'y'));
}

TEST(Unicode, classes) {
  EXPECT_EQ(classes_of('a') & (kLetter | kNumber | kSpace | kWord), kLetter | kWord);
  EXPECT_TRUE(is_space(0x3000) && is_space('\n') && is_space(0x85) && !is_space(0x200B));
  EXPECT_TRUE((classes_of(0x4F60) & kIdeograph) && !(classes_of(0x3042) & kIdeograph));  // hiragana is not an ideograph
  for (const char c : std::string("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")) EXPECT_TRUE(is_bert_punctuation(static_cast<char32_t>(c))) << c;
  for (const char32_t c : {U'a', U'0', U' ', U'\x7F', char32_t{0xA9}}) EXPECT_FALSE(is_bert_punctuation(c));
  EXPECT_TRUE(is_bert_punctuation(0x3002) && is_bert_punctuation(0xBF));
  EXPECT_TRUE(classes_of(0x301) & kAccent);
  EXPECT_TRUE((classes_of(0xAD) & kControl) && (classes_of(0xE000) & kControl) && !(classes_of(0x378) & kControl));
  EXPECT_TRUE((classes_of(0x2EBF0) & kLetter) && (classes_of(0x10D40) & kNumber));  // added after utf8proc's version
  EXPECT_FALSE(classes_of(0x2E52) & kPunctuation);                                  // added after Unicode 8
  EXPECT_TRUE((classes_of(0x24B6) & kWord) && (classes_of('_') & kWord) && !(classes_of(0xB2) & kWord));
}

TEST(Unicode, lower_case) {
  EXPECT_EQ(lower('A'), U'a');
  EXPECT_EQ(lower(0xC9), char32_t{0xE9});
  EXPECT_EQ(lower(0x3A3), char32_t{0x3C3});
  EXPECT_EQ(lower(0x1E9E), char32_t{0xDF});
  EXPECT_EQ(lower(kDottedCapitalI), U'i');
  EXPECT_EQ(lower(0x16EA0), char32_t{0x16EBB});  // Unicode 17
  EXPECT_EQ(lower(U'1'), U'1');
}

TEST(Unicode, composition) {
  EXPECT_EQ(compose_pair('e', 0x301), char32_t{0xE9});
  EXPECT_EQ(compose_pair(0x1100, 0x1161), char32_t{0xAC00});
  EXPECT_EQ(compose_pair('q', 0x301), char32_t{0});
  EXPECT_EQ(compose_pair(0x915, 0x93C), char32_t{0});  // excluded from composition
  std::vector<char32_t> parts;
  decompose(0x1EC7, false, parts);
  EXPECT_EQ(parts, (std::vector<char32_t>{'e', 0x323, 0x302}));
  decompose(0xFB01, true, parts);
  EXPECT_EQ(parts, (std::vector<char32_t>{'f', 'i'}));
}

TEST(Aligned, sources_are_whole_characters) {
  const Aligned text("a\u00e9\u4f60");
  EXPECT_EQ(text.source(0, 1), (Span{0, 1}));
  EXPECT_EQ(text.source(1, 2), (Span{1, 3}));  // half of a character
  EXPECT_EQ(text.source(4, 5), (Span{3, 6}));
  Aligned part;
  text.cut({1, 6}, part);
  EXPECT_EQ(part.source(0, 2), (Span{1, 3}));
}

TEST(Aligned, invalid_bytes_keep_their_source) {
  const Aligned text("a\xFF\xE2\x82z");
  EXPECT_EQ(text.text, "a\uFFFD\uFFFDz");
  EXPECT_EQ(text.source(1, 4), (Span{1, 2}));
  EXPECT_EQ(text.source(4, 7), (Span{2, 4}));
  EXPECT_EQ(text.source(7, 8), (Span{4, 5}));
}

TEST(ByteChars, every_byte_has_a_character) {
  EXPECT_EQ(to_byte_chars(" a\n\xE4"), "\u0120a\u010A\u00E4");
  std::string all, back;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_TRUE(from_byte_chars(to_byte_chars(all), back));
  EXPECT_EQ(back, all);
  EXPECT_FALSE(from_byte_chars("\u4f60", back));
}

}  // namespace
}  // namespace heed::text
