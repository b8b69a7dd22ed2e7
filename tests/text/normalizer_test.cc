#include "heed/text/normalizer.h"

#include <gtest/gtest.h>

#include "tests/io/files.h"

namespace heed::text {
namespace {

std::string normalized(const std::string& text, const Json& json) {
  Aligned aligned(text);
  make_normalizer({json, "normalizer"})(aligned);
  return aligned.text;
}

Json normalizer_of_type(const std::string& type) { return {{"type", type}}; }
Json bert(bool lowercase) {
  return {{"type", "BertNormalizer"},
          {"clean_text", true},
          {"handle_chinese_chars", true},
          {"strip_accents", nullptr},
          {"lowercase", lowercase}};
}

TEST(Normalizer, bert_cleans_lowercases_and_isolates_ideographs) {
  EXPECT_EQ(normalized("HeLLo\tW\xC3\x96rld\x01!", bert(true)), "hello world!");
  EXPECT_EQ(normalized("Caf\u00c9 e\u0301", bert(true)), "cafe e");
  EXPECT_EQ(normalized("Caf\u00c9", bert(false)), "Caf\u00c9");
  EXPECT_EQ(normalized("a\u4f60b", bert(true)), "a \u4f60 b");
  EXPECT_EQ(normalized(std::string("a\0b\xEF\xBF\xBD"
                                   "c\xC2\xAD",
                                   9),
                       bert(true)),
            "abc");                                  // zero, U+FFFD, a soft hyphen
  EXPECT_EQ(normalized("\u0130", bert(true)), "i");  // the dot above is an accent
  EXPECT_EQ(normalized("\u1EC7", bert(true)), "e");  // two accents
  EXPECT_EQ(normalized("\u3000x\u2028", bert(true)), " x ");
  EXPECT_EQ(normalized("\uAC00", bert(true)), "\u1100\u1161");  // hangul stays decomposed
  EXPECT_EQ(normalized("", bert(true)), "");
  EXPECT_EQ(normalized("A\x02", bert(true)), "a");  // ASCII has its own path
}

TEST(Normalizer, bert_keeps_offsets) {
  Aligned text("X\x01\u00c9\u4f60z");
  make_normalizer({bert(true), ""})(text);
  ASSERT_EQ(text.text, "xe \u4f60 z");
  EXPECT_EQ(text.source(1, 2), (Span{2, 4}));
  EXPECT_EQ(text.source(2, 7), (Span{4, 7}));
  EXPECT_EQ(text.source(7, 8), (Span{7, 8}));
  EXPECT_EQ(text.source(0, 8), (Span{0, 8}));
}

TEST(Normalizer, unicode_forms) {
  const std::string angstrom = "\u212B", ligature = "\uFB01", hangul = "\u1112\u1161\u11AB";
  EXPECT_EQ(normalized(angstrom, normalizer_of_type("NFD")), "A\u030A");
  EXPECT_EQ(normalized(angstrom, normalizer_of_type("NFC")), "\u00C5");
  EXPECT_EQ(normalized(ligature, normalizer_of_type("NFC")), ligature);
  EXPECT_EQ(normalized(ligature, normalizer_of_type("NFKC")), "fi");
  EXPECT_EQ(normalized("\u1E9B\u0323", normalizer_of_type("NFKD")), "s\u0323\u0307");
  EXPECT_EQ(normalized("\u1E9B\u0323", normalizer_of_type("NFKC")), "\u1E69");
  EXPECT_EQ(normalized(hangul, normalizer_of_type("NFC")), "\uD55C");
  EXPECT_EQ(normalized("\uD55C", normalizer_of_type("NFD")), hangul);
  EXPECT_EQ(normalized("a\u0301\u0323", normalizer_of_type("NFD")), "a\u0323\u0301");  // marks are ordered
  EXPECT_EQ(normalized("a\u0315\u0300\u05AE\u0301b", normalizer_of_type("NFC")), "\u00E0\u05AE\u0301\u0315b");
  EXPECT_EQ(normalized("\u0301a", normalizer_of_type("NFC")), "\u0301a");
  Aligned text("e\u0301x");
  normalize_form(text, Form::nfc);
  EXPECT_EQ(text.source(0, 2), (Span{0, 1}));  // the span of the first character, as in the package `tokenizers`
  EXPECT_EQ(text.source(2, 3), (Span{3, 4}));
  Aligned marks("a\u0315\u0330b");
  normalize_form(marks, Form::nfd);
  EXPECT_EQ(marks.text, "a\u0330\u0315b");
  EXPECT_EQ(marks.source(1, 3), (Span{1, 3}));  // marks are reordered, offsets are not
}

TEST(Normalizer, small_ones) {
  EXPECT_EQ(normalized("ABC \u0130\u00C9", normalizer_of_type("Lowercase")), "abc i\u0307\u00E9");
  EXPECT_EQ(normalized("e\u0301\u0903", normalizer_of_type("StripAccents")), "e");
  EXPECT_EQ(normalized(" \u3000a b\n", {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}), "a b");
  EXPECT_EQ(normalized(" a ", {{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}}), " a");
  EXPECT_EQ(normalized("   ", normalizer_of_type("Strip")), "");
  EXPECT_EQ(normalized("a b  c", {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}),
            "a\u2581"
            "b\u2581\u2581"
            "c");
  EXPECT_EQ(normalized("a b  c", {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}}), "a b c");
  EXPECT_EQ(normalized("a", {{"type", "Prepend"}, {"prepend", "_"}}), "_a");
  EXPECT_EQ(normalized("", {{"type", "Prepend"}, {"prepend", "_"}}), "");
  EXPECT_EQ(normalized("a\u200Bb\x7F"
                       "c\n",
                       normalizer_of_type("Nmt")),
            "a bc ");
  EXPECT_EQ(normalized("\u00C9A",
                       {{"type", "Sequence"},
                        {"normalizers", {normalizer_of_type("NFD"), normalizer_of_type("StripAccents"), normalizer_of_type("Lowercase")}}}),
            "ea");
}

// A map with one entry: "A" becomes "bc". Label 'A' leads from cell 0 to cell 0x41 ^ 1 = 0x40, which points to the value's cell.
TEST(Normalizer, precompiled_map) {
  std::vector<uint32_t> cells(0x60, 0);
  cells[0] = 1u << 10;                       // offset 1
  cells[0x40] = 1u << 10 | 1u << 8 | 0x41u;  // label 'A', has a value, offset 1
  cells[0x41] = 0x80000000u;                 // the value: offset 0
  const auto bytes = static_cast<uint32_t>(cells.size() * 4);
  std::string map(4 + bytes, '\0');
  std::memcpy(map.data(), &bytes, 4);
  std::memcpy(map.data() + 4, cells.data(), bytes);
  map += std::string("bc\0", 3);
  Aligned text("xA\u00e9");
  make_precompiled(map, "map")(text);
  EXPECT_EQ(text.text, "xbc\u00e9");
  EXPECT_EQ(text.source(1, 3), (Span{1, 2}));
  test::expect_refused([&] { make_precompiled("abc", "map"); }, "map: found 3 bytes");
  test::expect_refused([&] { make_precompiled(map.substr(0, 20), "map"); }, "expected a trie of 384 bytes");
}

TEST(Normalizer, refuses_what_it_does_not_know) {
  test::expect_refused(
      [] {
        make_normalizer({normalizer_of_type("Sparkle"), "t.json.normalizer"});
      },
      "t.json.normalizer: found the normalizer \"Sparkle\", expected one of");
  test::expect_refused([] { make_normalizer({Json{{"type", "Sequence"}}, "n"}); }, "n: found no \"normalizers\"");
  test::expect_refused([] { make_normalizer({Json{{"type", "Replace"}, {"pattern", {{"Regex", "(a"}}}, {"content", ""}}, "n"}); }, "PCRE2");
  test::expect_refused([] { make_normalizer({Json{{"type", "Precompiled"}, {"precompiled_charsmap", "a?"}}, "n"}); }, "expected base64");
}

}  // namespace
}  // namespace heed::text
